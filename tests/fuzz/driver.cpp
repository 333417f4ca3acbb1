// fuzz_* CASES SEED FILE...: the files as they are, then CASES mutations of them. A crash, a hang (ten
// seconds of computing) or a broken promise ends the program with code 1 and leaves the input in
// fuzz_failure.bin.
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz.hpp"

namespace rieszflow::fuzz {
namespace {

std::string input;  // of the case that runs

void keep_input() {
  const int file = open("fuzz_failure.bin", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  [[maybe_unused]] const auto written = write(file, input.data(), input.size());
  close(file);
}

void on_fault(int signal) {
  keep_input();
  const char* text = signal == SIGPROF ? "hang: no answer after ten seconds of computing\n"
                                       : "crash: a signal ended the reader\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
  _exit(1);
}

/// Other work on the machine does not make a hang.
void limit_computing(time_t seconds) {
  const itimerval once{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &once, nullptr);
}

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

std::string mutated(const std::vector<std::string>& seeds, const std::vector<std::string>& words,
                    Random& random) {
  std::string text = seeds[below(random, seeds.size())];
  for (std::size_t times = 1 + below(random, 6); times-- > 0;) {
    const std::size_t place = below(random, text.size() + 1), length = below(random, 40);
    switch (below(random, 7)) {
      case 0:
        if (!text.empty()) text[below(random, text.size())] ^= static_cast<char>(1u << below(random, 8));
        break;
      case 1:
        text.erase(place, length);
        break;
      case 2:
        text.insert(place, text.substr(below(random, text.size() + 1), length));
        break;
      case 3:
        text.insert(place, words[below(random, words.size())]);
        break;
      case 4: {
        const std::string& other = seeds[below(random, seeds.size())];
        text.replace(place, length, other, below(random, other.size() + 1), 4 * length);
        break;
      }
      case 5:
        text.resize(place);
        break;
      case 6:
        text.insert(place, 1, static_cast<char>(random()));
        break;
    }
  }
  return text;
}

}  // namespace

void broken(const std::string& promise) {
  keep_input();
  std::fprintf(stderr, "broken promise: %s\n", promise.c_str());
  _exit(1);
}

int run(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s CASES SEED FILE...\n", argv[0]);
    return 2;
  }
  const std::uint64_t cases = std::strtoull(argv[1], nullptr, 10), seed = std::strtoull(argv[2], nullptr, 10);
  std::vector<std::string> seeds;
  for (int k = 3; k < argc; ++k) {
    std::ifstream file(argv[k], std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>{});
    if (!file && seeds.back().empty()) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[k]);
      return 2;
    }
    seeds.back().resize(std::min<std::size_t>(seeds.back().size(), 8192));
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGPROF}) ::signal(signal, on_fault);
  const std::vector<std::string> words = dictionary();
  for (std::uint64_t number = 0; number < cases + seeds.size(); ++number) {
    Random random(seed * 0x9E3779B97F4A7C15u + number);  // a case is its number: it can be repeated alone
    input = number < seeds.size() ? seeds[number] : mutated(seeds, words, random);
    limit_computing(10);
    try_input(input);
  }
  limit_computing(0);
  std::printf("%llu cases, 0 crashes, 0 hangs, 0 broken promises\n",
              static_cast<unsigned long long>(cases + seeds.size()));
  return 0;
}

}  // namespace rieszflow::fuzz

#ifdef RIESZFLOW_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rieszflow::fuzz::try_input({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
int main(int argc, char** argv) { return rieszflow::fuzz::run(argc, argv); }
#endif
