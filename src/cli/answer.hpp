#pragma once
#include <functional>

namespace rieszflow::cli {

/// The exit code of `action`, or of what it throws, which is told to people and, with --json among the
/// arguments, to scripts: the user's fault, the machine's, or the program's own.
/// With several ranks the first one's code is everybody's; what only the machine of one rank did (disk,
/// memory) ends them all.
int answer(int argc, char** argv, const std::function<int()>& action);

/// Where mpirun or its like started this program: makes it one of several ranks, until `answer` returns.
/// Before any work.
void join_ranks();

}  // namespace rieszflow::cli
