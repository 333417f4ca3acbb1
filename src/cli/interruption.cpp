#include "cli/interruption.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "cli/exit_code.hpp"

namespace rieszflow::cli {
namespace {

// What a signal handler may touch.
std::atomic<bool> signalled{false};
static_assert(std::atomic<bool>::is_always_lock_free);

struct sigaction old_interrupt, old_terminate, old_user;

void on_signal(int) {
  if (signalled.exchange(true)) {
    constexpr char message[] = "\nrieszflow: stopped at once; the last checkpoint stands\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, message, sizeof message - 1);
    _exit(interrupted);
  }
  constexpr char message[] =
      "\nrieszflow: finishing the step and writing a checkpoint; once more to stop at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message, sizeof message - 1);
}

}  // namespace

Interruption::Interruption(std::optional<double> max_wall_seconds) : max_wall_seconds_(max_wall_seconds) {
  signalled = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_interrupt);
  sigaction(SIGTERM, &action, &old_terminate);
  sigaction(SIGUSR1, &action, &old_user);
}

Interruption::~Interruption() {
  sigaction(SIGINT, &old_interrupt, nullptr);
  sigaction(SIGTERM, &old_terminate, nullptr);
  sigaction(SIGUSR1, &old_user, nullptr);
}

bool Interruption::out_of_time() const {
  if (!max_wall_seconds_) return false;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() >=
         *max_wall_seconds_;
}

bool Interruption::wished() const { return signalled.load(std::memory_order_relaxed) || out_of_time(); }

}  // namespace rieszflow::cli
