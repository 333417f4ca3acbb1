#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/verdict.hpp"
#include "experiments/assemble.hpp"
#include "experiments/report_figures.hpp"
#include "experiments/setting.hpp"
#include "solvers/observer.hpp"

/// `rieszflow verify`: every theoretical limit of theory.md section 3 as a named claim that is tried and ends
/// in a verdict.
namespace rieszflow::verify {

/// How hard a claim is tried.
struct Effort {
  bool quick = false;
  int threads = 1;         ///< never changes a result
  std::uint64_t seed = 1;  ///< of this claim
  /// A number of samples or cells: `full`, or `small` when quick.
  template <class Number>
  Number of(Number full, Number small) const {
    return quick ? small : full;
  }
};

/// What a claim gave.
struct Finding {
  Estimate measured;  ///< standard error 0: known without noise
  double expected = 0.0;
  double tolerance = 0.0;  ///< absolute
  std::string rule;        ///< where the tolerance comes from
  std::vector<plot::Figure> figures{};
};

/// One theorem.
struct Claim {
  std::string name;
  std::string claim;      ///< a sentence with the formula
  std::string reference;  ///< equation and source of `expected`
  Finding (*measure)(const Effort& effort) = nullptr;
};

struct Chapter {
  std::string title;
  std::vector<Claim> claims;
};

/// All of them, in the order in which they are tried.
const std::vector<Chapter>& catalogue();

struct Question {
  bool quick = false;
  std::vector<std::string> only;  ///< names of claims; empty: all
  std::uint64_t seed = 1;
  int threads = 1;
};

struct Assembly {
  Question question;
  std::string resolved;  ///< the config with every default filled in
};

/// An empty `request.config`: the defaults. Throws config::ConfigError.
Assembly assemble(const Request& request);

using study::Setting;

struct Outcome : study::Outcome {
  std::size_t passed = 0;  ///< verdicts
  std::size_t failed = 0;
};

/// Tries every claim of the question, each with a random stream of its own name: verdicts do not depend on
/// which other claims are tried or on the number of threads. DIR/rows.json is replaced as a whole after each;
/// at the end summary.json, figures and report.html. `told` is called after each new verdict.
Outcome run(const Question& question, const Setting& setting,
            const std::function<void(const Verdict&)>& told = {});

}  // namespace rieszflow::verify
