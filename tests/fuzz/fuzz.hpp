#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A reader of untrusted bytes and what it must do with them. One program links one `try_input` with one
/// driver: driver.cpp (any compiler; the cases are mutations of given files) or LLVM's libFuzzer
/// (RIESZFLOW_LIBFUZZER).
namespace rieszflow::fuzz {

/// Aborts when the reader breaks a promise; returns when it read or refused the bytes.
void try_input(std::string_view bytes);

/// Ends the program with this sentence when a promise was broken.
[[noreturn]] void broken(const std::string& promise);

/// Words that the mutations insert.
std::vector<std::string> dictionary();

}  // namespace rieszflow::fuzz
