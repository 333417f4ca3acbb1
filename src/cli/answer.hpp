#pragma once
#include <functional>

namespace rieszflow::cli {

/// The exit code of `action`, or of what it throws, which is told to people and, with --json among the
/// arguments, to scripts: the user's fault, the machine's, or the program's own.
int answer(int argc, char** argv, const std::function<int()>& action);

}  // namespace rieszflow::cli
