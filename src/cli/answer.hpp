#pragma once
#include <functional>
#include <initializer_list>
#include <utility>

namespace rieszflow::cli {

/// The exit code of `action`, or of what it throws, which is told to people and, with --json among the
/// arguments, to scripts: the user's fault, the machine's, or the program's own.
/// With several ranks the first one's code is everybody's; what only the machine of one rank did (disk,
/// memory) ends them all.
int answer(int argc, char** argv, const std::function<int()>& action);

/// What libraries read from the environment before main: sets those variables that are not set, and then
/// starts the program again. Without /proc it goes on as it is.
void start_again_with(char** argv, std::initializer_list<std::pair<const char*, const char*>> variables);

/// Where mpirun or its like started this program: makes it one of several ranks, until `answer` returns.
/// Before any work.
void join_ranks();

}  // namespace rieszflow::cli
