#pragma once
#include <string>

#include "config/schema.hpp"

namespace rieszflow::catalogue {

/// The config of `rieszflow verify`: which claims are tried, and how hard. Everything has a default.
const config::Schema& verify();

/// A config that tries one claim, or all when `claim` is empty.
std::string verify_sample(const std::string& claim);

}  // namespace rieszflow::catalogue
