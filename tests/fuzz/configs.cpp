// fuzz_configs CASES SEED FILE...: valid configs with a few lines changed, at tiny size. Each is refused with
// file, line and key, or it runs and ends with an honest status; no crash, no hang, no number that is none in
// what a completed run says. The FILEs and the samples that `rieszflow defaults` prints are where the
// mutations start.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "core/expects.hpp"
#include "experiments/assemble.hpp"
#include "experiments/catalogue.hpp"
#include "experiments/learning_config.hpp"
#include "experiments/plan.hpp"
#include "experiments/study.hpp"
#include "model/mean_field.hpp"
#include "summation/energy.hpp"

namespace rieszflow::fuzz {
namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

/// Of computing. The longest honest case is the pilot run of timestep = "auto" for a thousand singular
/// particles.
constexpr unsigned seconds_per_case = 300;

enum class Command { Run, Study, Learn };
struct Start {
  Command command;
  std::vector<std::string> lines;
};

/// What the cases of a batch came to; shared with the child that runs them.
struct Tally {
  std::uint64_t number = 0;  ///< of the case that runs
  std::uint64_t refused = 0, completed = 0, mathematics = 0, assembled = 0, too_large = 0;
  char sentence[2000] = "";  ///< of the first broken promise
};
Tally* tally = nullptr;

[[noreturn]] void broken(const std::string& promise) {
  std::snprintf(tally->sentence, sizeof tally->sentence, "%s", promise.c_str());
  _exit(1);
}

std::size_t below(Random& random, std::size_t bound) { return random() % std::max<std::size_t>(bound, 1); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("count = "))
      line = "count = 50";  // a pilot run before the size is cut takes milliseconds
    lines.push_back(line);
  }
  return lines;
}

/// A value that somebody might write, and some that nobody should.
std::string odd_value(Random& random) {
  static constexpr std::array values{"0",
                                     "-1",
                                     "1",
                                     "2",
                                     "3",
                                     "0.5",
                                     "-0.0",
                                     "1e-3",
                                     "1e308",
                                     "-1e308",
                                     "1e-308",
                                     "5e-324",
                                     "nan",
                                     "inf",
                                     "-inf",
                                     "1e15",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "\"\"",
                                     "\"auto\"",
                                     "\"x\"",
                                     "\"log(x)\"",
                                     "\"1/r\"",
                                     "\"x^2 + y^2\"",
                                     "\"exp(1000*x)\"",
                                     "\"0\"",
                                     "\"rnd()\"",
                                     "\"((((\"",
                                     "\"é\"",
                                     "true",
                                     "[]",
                                     "[0]",
                                     "[1]",
                                     "[1.0, 2.0]",
                                     "[-1.0, -1.0, -1.0]",
                                     "[[1.0]]",
                                     "[nan]",
                                     "[1e308]",
                                     "[0.1, 0.1, 0.1, 0.1]",
                                     "[\"x\"]",
                                     "{}",
                                     "1979-05-27",
                                     "[8]",
                                     "[8, 8]",
                                     "[1, 1, 1]",
                                     "[100000, 100000]",
                                     "\"riesz\"",
                                     "\"ball\"",
                                     "\"torus\"",
                                     "\"whole_space\"",
                                     "\"mala\"",
                                     "\"fast\"",
                                     "\"random_batch\"",
                                     "\"upwind\"",
                                     "\"energy_stable\"",
                                     "\"uniform\"",
                                     "\"gaussian\"",
                                     "\"mixture\""};
  return values[below(random, values.size())];
}

std::string scaled(const std::string& value, Random& random) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (end == value.c_str()) return odd_value(random);
  const double factor = std::pow(10.0, static_cast<double>(below(random, 7)) - 3.0);
  char text[64];
  std::snprintf(text, sizeof text, value.find('.') == std::string::npos ? "%.0f" : "%.17g", number * factor);
  return text;
}

/// One to four changes of lines: another value, a comment that becomes a line, a line less, twice or
/// elsewhere.
std::string mutated(std::vector<std::string> lines, Random& random) {
  for (std::size_t times = 1 + below(random, 4); times-- > 0 && !lines.empty();) {
    const std::size_t place = below(random, lines.size());
    std::string& line = lines[place];
    switch (below(random, 8)) {
      case 0:
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(place));
        break;
      case 1:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place), line);
        break;
      case 2:
        std::swap(line, lines[below(random, lines.size())]);
        break;
      case 3:
        line.erase(0, line.find_first_not_of("# "));  // the samples hold the alternatives as comments
        break;
      default: {
        const std::size_t equals = line.find('=');
        if (equals == std::string::npos || line.starts_with("#")) break;
        const std::string value = line.substr(equals + 1, line.find('#') - equals - 1);
        line = line.substr(0, equals + 1) + " " +
               (below(random, 2) == 0 ? odd_value(random) : scaled(value, random));
      }
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

template <class Range>
void expect_numbers(const Range& values, const char* of) {
  for (const double value : values)
    if (std::isnan(value)) broken(std::string("not a number: ") + of);
}

Schedule schedule_to(double end) { return end > 0.0 ? Schedule::at({0.0, end}) : Schedule::at({0.0}); }

/// Ends the child after this much computing: other work on the machine does not make a hang.
void limit_computing(unsigned seconds) {
  const itimerval once{.it_interval = {}, .it_value = {.tv_sec = static_cast<time_t>(seconds), .tv_usec = 0}};
  setitimer(ITIMER_PROF, &once, nullptr);
}

/// Both sides for a few steps, cut to a size that takes milliseconds; true when everything completed.
bool run_tiny(side_by_side::Question question) {
  constexpr std::int64_t most_stops = 40;
  const auto stop = [asked = std::int64_t{0}](const Clock&) mutable {
    return ++asked > most_stops ? std::optional(RunStatus::StoppedByRule) : std::nullopt;
  };
  bool completed = true;
  if (question.density) {
    std::size_t most_cells = question.density->cells.size() == 1   ? 64
                             : question.density->cells.size() == 2 ? 12
                                                                   : 6;
    for (std::size_t& cells : question.density->cells) cells = std::min(cells, most_cells);
    const MeanField field(question.model, grid_on(question.model.domain, question.density->cells),
                          {.weights = question.density->weights});
    pde::State state{.density = cell_averages(question.initial, question.model.domain, field.grid())};
    const double before = mass(state.density);
    const auto result =
        pde::run(field, state, question.density->options, schedule_to(question.end), {}, stop);
    completed =
        completed && (result.status == RunStatus::Completed || result.status == RunStatus::StoppedByRule);
    if (!completed && result.message.empty()) broken("the density ends without a sentence");
    expect_numbers(state.density.averages, "the density");
    if (std::abs(mass(state.density) - before) > 1e-9) broken("the density lost mass");
  }
  if (question.particles) {
    side_by_side::ParticleSide& side = *question.particles;
    if (!std::holds_alternative<PositionsLaw>(question.initial)) {
      side.count = std::min<std::size_t>(side.count, 12);
      side.replicas = std::min<std::size_t>(side.replicas, 2);
    }
    const double end = std::min(question.end, 5.0 * side.options.timestep);
    particle::State state{.ensemble = sample(question.initial, question.model.domain, side.replicas,
                                             side.count, side.options.seed),
                          .clock = {}};
    const auto result = particle::run(question.model, state, side.options, schedule_to(end), {}, stop);
    const bool ended_well =
        result.status == RunStatus::Completed || result.status == RunStatus::StoppedByRule;
    if (!ended_well && result.message.empty()) broken("the particles end without a sentence");
    completed = completed && ended_well;
    expect_numbers(state.ensemble.positions, "the particles");
    for (std::size_t i = 0; ended_well && i < state.ensemble.positions.size();
         i += state.ensemble.dimension) {
      if (!contains(question.model.domain,
                    std::span(state.ensemble.positions).subspan(i, state.ensemble.dimension)))
        broken("a particle left the domain");
    }
  }
  return completed;
}

void try_config(Command command, const fs::path& file) {
  const Request request{.config = file};
  try {
    switch (command) {
      case Command::Run: {
        Assembly assembly = assemble(request);
        if (obstacle(plan(assembly.question), file.parent_path())) {
          ++tally->too_large;
          return;
        }
        ++(run_tiny(std::move(assembly.question)) ? tally->completed : tally->mathematics);
        return;
      }
      case Command::Study:
        study::plan(study::assemble(request).question);
        break;
      case Command::Learn:
        learning::assemble(request);
        break;
    }
    ++tally->assembled;
  } catch (const config::ConfigError& error) {
    ++tally->refused;
    for (const config::Problem& problem : error.problems()) {
      if (problem.source.empty() || problem.what.empty())
        broken("a problem without place or words: " + problem.text());
      if (problem.line == 0 && problem.key.empty() && problem.source != file.string())
        broken("a problem without its key: " + problem.text());
    }
  } catch (const std::exception& error) {
    broken(std::string("an exception that is no refusal: ") + error.what());
  }
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Start> starts(std::span<char*> files) {
  std::vector<Start> all;
  for (const catalogue::Command& known : catalogue::commands()) {
    if (known.name == "run") all.push_back({Command::Run, lines_of(config::sample_config(known.schema))});
    if (known.name == "learn") all.push_back({Command::Learn, lines_of(config::sample_config(known.schema))});
  }
  for (const std::string& type : catalogue::study_types())
    all.push_back({Command::Study, lines_of(catalogue::study_sample(type))});
  for (const char* file : files) {
    const std::string text = content(file);
    all.push_back(
        {text.find("\n[study]") != std::string::npos ? Command::Study : Command::Run, lines_of(text)});
  }
  // `run` is where something moves: every second case.
  return all;
}

int run(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CASES SEED FILE...\n", argv[0]);
    return 2;
  }
  const std::uint64_t cases = std::strtoull(argv[1], nullptr, 10), seed = std::strtoull(argv[2], nullptr, 10);
  const std::vector<Start> all = starts({argv + 3, static_cast<std::size_t>(argc - 3)});
  std::vector<std::size_t> runs;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].command == Command::Run) runs.push_back(k);

  tally = static_cast<Tally*>(
      mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (tally == MAP_FAILED) return 4;
  *tally = Tally{};
  const fs::path memory = "/dev/shm";
  const fs::path folder = (fs::is_directory(memory) ? memory : fs::temp_directory_path()) /
                          ("rieszflow_fuzz_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path file = folder / "config.toml";

  int faults = 0;
  for (std::uint64_t first = 0; first < cases;) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit memory_limit{.rlim_cur = rlim_t{4} << 30, .rlim_max = rlim_t{4} << 30};
      setrlimit(RLIMIT_AS, &memory_limit);
      for (std::uint64_t number = first; number < std::min(cases, first + 500); ++number) {
        tally->number = number;
        Random random(seed * 0x9E3779B97F4A7C15u + number);  // a case is its number: it can be repeated alone
        const Start& start =
            all[number % 2 == 0 ? runs[below(random, runs.size())] : below(random, all.size())];
        std::ofstream(file, std::ios::binary) << mutated(start.lines, random);
        limit_computing(seconds_per_case);
        try_config(start.command, file);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      first += 500;
      continue;
    }
    ++faults;
    const std::string keep = "fuzz_failure_" + std::to_string(tally->number) + ".toml";
    std::ofstream(keep, std::ios::binary) << content(file);
    std::fprintf(stderr, "case %llu (%s): %s\n", static_cast<unsigned long long>(tally->number), keep.c_str(),
                 WIFSIGNALED(status) ? (WTERMSIG(status) == SIGPROF ? "hangs" : strsignal(WTERMSIG(status)))
                                     : tally->sentence);
    first = tally->number + 1;
    if (faults >= 20) break;
  }
  fs::remove_all(folder);
  std::printf(
      "%llu cases: %llu refused, %llu ran to the end, %llu ended with a status, %llu assembled, %llu too "
      "large for this machine; %d faults\n",
      static_cast<unsigned long long>(cases), static_cast<unsigned long long>(tally->refused),
      static_cast<unsigned long long>(tally->completed), static_cast<unsigned long long>(tally->mathematics),
      static_cast<unsigned long long>(tally->assembled), static_cast<unsigned long long>(tally->too_large),
      faults);
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rieszflow::fuzz

int main(int argc, char** argv) { return rieszflow::fuzz::run(argc, argv); }
