#include "experiments/large_deviations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "analysis/estimate.hpp"
#include "analysis/extrapolation.hpp"
#include "analysis/rate_fit.hpp"
#include "core/expects.hpp"
#include "domain/grid.hpp"
#include "experiments/exact_tails.hpp"
#include "experiments/report_page.hpp"
#include "experiments/sweep.hpp"
#include "io/files.hpp"
#include "model/description.hpp"
#include "solvers/rare_event/minimisers.hpp"
#include "solvers/rare_event/partition_function.hpp"
#include "solvers/stationary/rate_function.hpp"

namespace rieszflow::large_deviations {
namespace {

using Json = nlohmann::ordered_json;
using Kind = StatisticChoice::Kind;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t least_cells = 60;  ///< of the coarsest grid of an extrapolation

/// <phi(z_a; omega), phi(z_b; omega)> for a <= b (KernelDistance) or for the one pair a = 0, b = 1
/// (KernelEntry).
std::function<void(std::span<const double>, std::span<double>)> feature_products(
    const StatisticChoice& choice) {
  const LiftedData data = lift(choice.map, choice.points, choice.data_dimension);
  const bool entry = choice.kind == Kind::KernelEntry;
  return [data, map = choice.map, entry](std::span<const double> omega, std::span<double> out) {
    const std::size_t components = component_count(map);
    std::vector<double> phi(data.count * components);
    feature_values(map, data, omega, phi);
    std::size_t k = 0;
    for (std::size_t a = 0; a < data.count; ++a) {
      for (std::size_t b = entry ? a + 1 : a; b < data.count; ++b) {
        out[k] = 0.0;
        for (std::size_t c = 0; c < components; ++c)
          out[k] += phi[a * components + c] * phi[b * components + c];
        ++k;
      }
    }
  };
}

double function_of(const StatisticChoice& choice, std::span<const double> x) {
  switch (choice.kind) {
    case Kind::Mean:
      return x[choice.axis];
    case Kind::Moment: {
      double sum = 0.0;
      for (const double coordinate : x) sum += std::pow(coordinate, choice.power);
      return sum;
    }
    case Kind::Linear:
    case Kind::Largest:
      return (*choice.function)(x);
    case Kind::KernelEntry:
    case Kind::KernelDistance:
      break;
  }
  expects(false, "a statistic of one function");
  return 0.0;
}

std::size_t point_count(const StatisticChoice& choice) {
  return choice.points.size() / choice.data_dimension;
}

/// Mean square over all ordered pairs from the unordered ones: off-diagonal pairs count twice.
std::vector<double> pair_weights(const StatisticChoice& choice) {
  const std::size_t n = point_count(choice);
  std::vector<double> weights;
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a; b < n; ++b) weights.push_back((a == b ? 1.0 : 2.0) / static_cast<double>(n * n));
  }
  return weights;
}

rare_event::Event event_of(Side side, double level) {
  switch (side) {
    case Side::Above:
      return {.lower = level};
    case Side::Below:
      return {.upper = level};
    case Side::Within:
      return {.lower = -level, .upper = level};
  }
  expects(false, "a side");
  return {};
}

std::string event_text(Side side, double level) {
  return side == Side::Above   ? fmt::format("g > {:g}", level)
         : side == Side::Below ? fmt::format("g < {:g}", level)
                               : fmt::format("|g| < {:g}", level);
}

/// The rate function I of a linear statistic along the line, and Laplace's integrals with it.
///
///     P_N(g in A) = C(1 + O(1/N)) integral_A exp(-N I) / integral exp(-N I),
///
/// the factor being smooth in N. For an event with a steep edge the quotient is exp(-N I_A) N^(-1/2) times a
/// constant; near a flat edge, a second well or a critical point it is not at the N of a simulation, and a
/// fit with (1/2) log N is wrong by per cents where this one is by 0.05.
class RateCurve {
 public:
  /// Nodes from all minimisers of F outwards, until I is 25/least_count above `deepest`. Empty when a point
  /// between two wells is not found, or when the nodes end (where no density was found) within 8/least_count
  /// of `deepest`.
  static std::optional<RateCurve> traced(const MeanField& field, const stationary::Observable& observable,
                                         const std::vector<stationary::Result>& minima, double least_count,
                                         double deepest) {
    const Grid& grid = field.grid();
    const double lowest = minima.front().energy.free_energy;
    std::vector<double> wells;
    for (const stationary::Result& minimum : minima) {
      if (minimum.energy.free_energy <= lowest + 1e-9 * (1.0 + std::abs(lowest)))
        wells.push_back(stationary::value(observable, grid, minimum.density.averages));
    }
    std::sort(wells.begin(), wells.end());
    stationary::Observable squares = observable;
    const double middle =
        stationary::value(observable, grid, minima.front().density.averages);  // any of the wells
    for (double& value : squares.components[0]) value = (value - middle) * (value - middle);
    const double deviation = std::sqrt(stationary::value(squares, grid, minima.front().density.averages));
    if (!(deviation > 0.0) || !std::isfinite(deviation)) return {};
    RateCurve curve;
    const auto add = [&](double level) {
      const stationary::RatePoint point = stationary::rate(field, observable, level, minima, {});
      if (point.status != RunStatus::Completed) return false;
      curve.nodes_.push_back({level, point.rate, point.tilt});
      return true;
    };
    const double gap = wells.back() - wells.front();
    const int pieces = static_cast<int>(std::ceil(gap / (deviation / points_per_deviation)));
    for (const double well : {wells.front(), wells.back()}) curve.nodes_.push_back({well, 0.0, 0.0});
    if (gap <= 1e-6 * deviation) curve.nodes_.pop_back();
    for (int k = 1; k < pieces && gap > 1e-6 * deviation; ++k) {
      if (!add(wells.front() + gap * k / pieces)) return {};
    }
    for (const double sign : {-1.0, 1.0}) {
      double level = sign < 0.0 ? wells.front() : wells.back(), step = deviation / points_per_deviation,
             rate = 0.0;
      while (rate < deepest + 25.0 / least_count && step > 1e-3 * deviation) {
        if (add(level + sign * step)) {
          level += sign * step;
          rate = curve.nodes_.back().rate;
        } else {
          step *= 0.5;  // the end of the range of the statistic, or of what the solver reaches
        }
      }
      if (rate < deepest + 8.0 / least_count) return {};
    }
    std::sort(curve.nodes_.begin(), curve.nodes_.end(),
              [](const Node& a, const Node& b) { return a.level < b.level; });
    return curve;
  }

  /// -log(integral_A exp(-N (I - rate)) / integral exp(-N I)).
  double correction(double count, const rare_event::Event& event, double rate) const {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    return std::log(integral(count, -infinite, infinite, 0.0)) -
           std::log(integral(count, event.lower, event.upper, rate));
  }

 private:
  struct Node {
    double level, rate, slope;
  };

  /// integral of exp(-N (I - shift)) from `lower` to `upper`, I between nodes by Hermite's cubic.
  double integral(double count, double lower, double upper, double shift) const {
    double sum = 0.0;
    for (std::size_t k = 0; k + 1 < nodes_.size(); ++k) {
      const Node &a = nodes_[k], &b = nodes_[k + 1];
      const double h = b.level - a.level, from = std::max(lower, a.level), to = std::min(upper, b.level);
      if (!(from < to)) continue;
      for (int i = 0; i < panels; ++i) {
        const double t = (from + (to - from) * (i + 0.5) / panels - a.level) / h, s = 1.0 - t;
        const double value = s * s * (1.0 + 2.0 * t) * a.rate + t * t * (1.0 + 2.0 * s) * b.rate +
                             h * s * t * (s * a.slope - t * b.slope);
        sum += std::exp(-count * (value - shift)) * (to - from) / panels;
      }
    }
    return sum;
  }

  static constexpr double points_per_deviation = 10.0;
  static constexpr int panels = 64;
  std::vector<Node> nodes_;
};

bool is_linear(const StatisticChoice& choice) {
  return choice.kind != Kind::Largest && choice.kind != Kind::KernelDistance;
}

/// Everything from the mean-field side at one temperature.
struct Limit {
  std::optional<RateCurve> curve{};                   ///< of a linear statistic in d = 1
  std::vector<double> target;                         ///< of a kernel distance
  std::vector<std::pair<double, std::string>> rates;  ///< (level) I, NaN with a reason
  std::vector<double> rate_errors{};                  ///< (level) of the extrapolation in the grid; NaN: none
  std::vector<double> grid_rates{};                   ///< (level) the same on the grid of the curve
};

/// Keeps the density inside {f < level}: a wall that leaves exp(-300) of it outside, which has a logarithm.
class Confinement final : public GridFunctional {
 public:
  Confinement(std::vector<double> f, double level, double inverse_temperature, double cell_volume)
      : wall_(std::move(f)), cell_volume_(cell_volume) {
    for (double& value : wall_) value = value < level ? 0.0 : 300.0 / inverse_temperature;
  }
  double value(std::span<const double> averages, std::span<double> first_variation) const override {
    std::copy(wall_.begin(), wall_.end(), first_variation.begin());
    return cell_volume_ * std::inner_product(wall_.begin(), wall_.end(), averages.begin(), 0.0);
  }
  /// `density` with what it has outside moved inside.
  Density confined(Density density, double inverse_temperature) const {
    for (std::size_t i = 0; i < wall_.size(); ++i)
      density.averages[i] *= std::exp(-inverse_temperature * wall_[i]);
    const double inside = mass(density);
    for (double& average : density.averages) average /= inside;
    return density;
  }

 private:
  std::vector<double> wall_;
  double cell_volume_;
};

/// All of it on one grid; `cells` may be empty.
Limit limit_on(const Question& question, double beta, const std::vector<std::size_t>& cells,
               bool with_curve) {
  Limit limit;
  limit.rates.assign(question.levels.size(), {not_a_number, "no grid"});
  Model model = question.model;
  model.inverse_temperature = beta;
  const StatisticChoice& choice = question.statistic;
  const std::optional<Model> on = rare_event::bounded(model);
  if (cells.empty() || !on) return limit;
  const Grid grid = grid_on(on->domain, cells);
  const MeanField field(*on, grid, {.threads = question.options.threads});
  stationary::Observable observable;
  if (choice.kind == Kind::KernelEntry || choice.kind == Kind::KernelDistance) {
    const auto products = feature_products(choice);
    const std::size_t n = point_count(choice), pairs = choice.kind == Kind::KernelEntry ? 1 : n * (n + 1) / 2;
    std::vector<double> values(pairs);
    for (std::size_t k = 0; k < pairs; ++k) {
      observable.components.push_back(stationary::cell_averages(grid, [&](std::span<const double> x) {
        products(x, values);
        return values[k];
      }));
    }
  } else {
    observable.components = {
        stationary::cell_averages(grid, [&](std::span<const double> x) { return function_of(choice, x); })};
  }
  const stationary::RateOptions options;
  const std::vector<stationary::Result> minima = stationary::minimisers(field, observable, options);
  if (minima.empty()) {
    for (auto& rate : limit.rates) rate.second = "no minimiser of F was found";
    return limit;
  }
  const double lowest = minima.front().energy.free_energy;
  if (choice.kind == Kind::KernelDistance) {
    for (const std::vector<double>& f : observable.components) {
      stationary::Observable single{.components = {f}};
      limit.target.push_back(stationary::value(single, grid, minima.front().density.averages));
    }
    observable.kind = stationary::Observable::Kind::Distance;
    observable.target = limit.target;
    observable.weights = pair_weights(choice);
  }
  for (std::size_t l = 0; l < question.levels.size(); ++l) {
    const double level = question.levels[l];
    if (choice.kind == Kind::Largest) {
      if (question.side != Side::Below) {
        limit.rates[l].second = "the rate of a largest value is known for events below a level";
        continue;
      }
      const Confinement wall(observable.components[0], level, beta, grid.cell_volume());
      const stationary::Result confined =
          stationary::solve(field, wall.confined(minima.front().density, beta), options.solve, wall);
      limit.rates[l] =
          confined.status == RunStatus::Completed
              ? std::pair(beta * (field.free_energy(confined.density).free_energy - lowest), std::string())
              : std::pair(not_a_number, std::string("no confined minimiser was found"));
      continue;
    }
    const rare_event::Event event = event_of(question.side, level);
    const stationary::RatePoint point =
        stationary::rate_of_event(field, observable, event.lower, event.upper, minima, options);
    limit.rates[l] = {point.rate, point.message};
  }
  for (const auto& [rate, message] : limit.rates) limit.grid_rates.push_back(rate);
  if (with_curve && is_linear(choice) && grid.dimension() == 1) {
    double deepest = 0.0;
    for (const double rate : limit.grid_rates) deepest = std::max(deepest, std::isfinite(rate) ? rate : 0.0);
    const auto least = *std::min_element(question.counts.begin(), question.counts.end());
    limit.curve = RateCurve::traced(field, observable, minima, static_cast<double>(least), deepest);
  }
  return limit;
}

/// On a line the rates of n, n/2, n/4, ... cells, five grids at most, are extrapolated (`accelerated`)
/// whatever their order: a tilt by a statistic that is infinite at a wall leaves a power of the distance
/// there, and errors whose orders are between 0 and 1.
Limit limit_of(const Question& question, double beta) {
  Limit limit = limit_on(question, beta, question.cells, true);
  limit.rate_errors.assign(limit.rates.size(), not_a_number);
  if (question.cells.size() != 1 || !is_linear(question.statistic)) return limit;
  std::vector<Limit> coarser;  // finest first
  for (std::size_t cells = question.cells[0];
       cells % 2 == 0 && cells / 2 >= least_cells && coarser.size() < 4;) {
    cells /= 2;
    coarser.push_back(limit_on(question, beta, {cells}, false));
  }
  for (std::size_t l = 0; l < limit.rates.size(); ++l) {
    std::vector<double> values{limit.rates[l].first};
    for (const Limit& grid : coarser) values.push_back(grid.rates[l].first);
    std::reverse(values.begin(), values.end());
    if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) continue;
    const Accelerated rate = accelerated(values);
    limit.rates[l].first = rate.limit;
    limit.rate_errors[l] = rate.limit_error;
  }
  return limit;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double number_at(const Json& row, const char* key) {
  return row.at(key).is_number() ? row.at(key).get<double>() : not_a_number;
}

Json row_of(const Question& question, const rare_event::Statistic& statistic, std::size_t count, double beta,
            double level, double rate_theory, rare_event::TailProbability& measured, const Setting& setting) {
  Model model = question.model;
  model.inverse_temperature = beta;
  rare_event::Options options = question.options;
  options.seed = sweep::seed_of(
      question.options.seed, std::array{static_cast<std::uint64_t>(count), std::bit_cast<std::uint64_t>(beta),
                                        std::bit_cast<std::uint64_t>(level)});
  options.interrupted = setting.interrupted;
  options.ranks = setting.ranks;
  const rare_event::Event event = event_of(question.side, level);
  measured = question.method
                 ? rare_event::tail_probability(model, count, statistic, event, options, *question.method)
                 : rare_event::tail_probability(model, count, statistic, event, options);
  double autocorrelation_time = 1.0, acceptance = 0.0;
  for (const rare_event::Window& window : measured.windows) {
    acceptance += window.acceptance / static_cast<double>(measured.windows.size());
    if (window.series.size() > 1)
      autocorrelation_time = std::max(autocorrelation_time, autocorrelation(window.series).time);
  }
  Json windows = Json::array();
  for (const rare_event::Window& window : measured.windows) {
    windows.push_back({{"tilt", window.bias.tilt},
                       {"stiffness", window.bias.stiffness},
                       {"center", window.bias.center},
                       {"mean", number(window.mean)},
                       {"standard_deviation", number(window.standard_deviation)},
                       {"acceptance", window.acceptance},
                       {"step", window.step}});
  }
  return {{"count", count},
          {"inverse_temperature", beta},
          {"level", level},
          {"status", name(measured.status)},
          {"message", measured.message},
          {"method", rare_event::name(measured.method)},
          {"log_probability", number(measured.log_probability)},
          {"standard_error", number(measured.standard_error)},
          {"rate", number(-measured.log_probability / static_cast<double>(count))},
          {"rate_theory", number(rate_theory)},
          {"replicates", measured.replicate_values},
          {"least_overlap", measured.least_overlap},
          {"autocorrelation_time", autocorrelation_time},
          {"acceptance", acceptance},
          {"effective_samples", number(measured.effective_samples / autocorrelation_time)},
          {"moves", measured.moves},
          {"seconds", measured.seconds},
          {"cpu_seconds", measured.cpu_seconds},
          {"windows", windows}};
}

/// Fit across the counts at one temperature and level; null with fewer than two measured counts.
Json fit_across_counts(const Question& question, const Json& rows, double beta, std::size_t index,
                       const Limit& limit) {
  const double level = question.levels[index], rate_theory = limit.rates[index].first,
               grid_rate = limit.grid_rates.empty() ? not_a_number : limit.grid_rates[index];
  const bool set_event = question.statistic.kind == Kind::Largest;
  const rare_event::Event event = event_of(question.side, level);
  bool laplace = limit.curve.has_value() && std::isfinite(rate_theory);
  for (const Json& row : rows) {
    if (laplace && row.at("inverse_temperature") == beta && row.at("level") == level)
      laplace = std::isfinite(limit.curve->correction(row.at("count"), event, grid_rate));
  }
  std::vector<TailPoint> points;
  for (const Json& row : rows) {
    if (row.at("inverse_temperature") != beta || row.at("level") != level ||
        !row.at("log_probability").is_number())
      continue;
    points.push_back({.size = row.at("count").get<double>(),
                      .log_probability = {row.at("log_probability").get<double>(),
                                          number_at(row, "standard_error"), row.at("replicates").size()}});
  }
  if (points.size() < 2) return nullptr;
  const double coefficient = set_event || laplace ? 0.0 : 0.5;
  std::vector<TailPoint> corrected = points;
  std::vector<double> corrections;
  for (TailPoint& point : corrected) {
    corrections.push_back(laplace ? limit.curve->correction(point.size, event, grid_rate)
                                  : coefficient * std::log(point.size));
    if (laplace) point.log_probability.value += corrections.back();
  }
  const TailFit fit =
      fit_tail(corrected, {.log_coefficient = coefficient, .inverse_term = points.size() >= 3});
  Json json{
      {"inverse_temperature", beta},
      {"level", level},
      {"form", set_event ? "N I + a + c/N"
               : laplace
                   ? "N I - log(integral over the event of exp(-N (I(x) - I)) / integral of exp(-N I(x))) "
                     "+ a + c/N"
                   : "N I + (1/2) log N + a + c/N"},
      {"corrections", corrections},
      {"rate", fit.rate.value},
      {"standard_error", number(fit.rate.standard_error)},
      {"offset", fit.offset},
      {"inverse_coefficient", fit.inverse_coefficient},
      {"chi_squared", fit.chi_squared},
      {"degrees_of_freedom", fit.degrees_of_freedom},
      {"rate_theory", number(rate_theory)},
      {"rate_theory_error", number(limit.rate_errors[index])}};
  if (points.size() >= 4) {
    const TailFit free = fit_tail(points, {.log_coefficient = {}, .inverse_term = false});
    json["free_log_coefficient"] = free.log_coefficient.value;
    json["free_log_coefficient_error"] = number(free.log_coefficient.standard_error);
    json["rate_with_free_log_coefficient"] = free.rate.value;
  }
  if (std::isfinite(rate_theory)) {
    const double z = (fit.rate.value - rate_theory) / fit.rate.standard_error;
    const double relative = fit.rate.value / rate_theory - 1.0;
    json["z"] = number(z);
    json["relative_error"] = number(relative);
    json["passed"] = std::abs(z) < 3.0 && std::abs(relative) < 0.01;
  }
  return json;
}

/// Fit across the temperatures at one count and level.
Json fit_across_temperatures(const Question& question, const Json& rows, std::size_t count, double level) {
  std::vector<TailPoint> points;
  for (const Json& row : rows) {
    if (row.at("count") != count || row.at("level") != level || !row.at("log_probability").is_number())
      continue;
    points.push_back({.size = row.at("inverse_temperature").get<double>() * static_cast<double>(count),
                      .log_probability = {row.at("log_probability").get<double>(),
                                          number_at(row, "standard_error"), row.at("replicates").size()}});
  }
  if (points.size() < 4) return nullptr;
  const TailFit fit = fit_tail(points, {.log_coefficient = {}, .inverse_term = false});
  Json json{{"count", count},
            {"level", level},
            {"form", "beta N E + a log beta + b"},
            {"energy", fit.rate.value},
            {"standard_error", number(fit.rate.standard_error)},
            {"log_coefficient", fit.log_coefficient.value},
            {"chi_squared", fit.chi_squared},
            {"degrees_of_freedom", fit.degrees_of_freedom}};
  if (question.statistic.kind != Kind::Largest && question.statistic.kind != Kind::KernelDistance) {
    const rare_event::Statistic statistic = statistic_of(question.statistic, {});
    const rare_event::MinimiserOptions options{
        .starts = 8, .seed = question.options.seed, .threads = question.options.threads};
    const auto free = rare_event::minimise(question.model, count, options);
    const auto inside =
        rare_event::minimise(question.model, count, statistic, event_of(question.side, level), options);
    if (free.status == RunStatus::Completed && inside.status == RunStatus::Completed) {
      json["energy_theory"] = inside.best.hamiltonian - free.best.hamiltonian;
    }
  }
  return json;
}

/// What is known exactly about each row, beside it.
void add_exact_values(const Question& question, Json& rows) {
  for (Json& row : rows) {
    const auto exact =
        exact_log_probability(question, row.at("count"), row.at("inverse_temperature"), row.at("level"));
    if (!exact || !row.at("log_probability").is_number()) continue;
    const double difference = row.at("log_probability").get<double>() - *exact;
    row["exact_log_probability"] = *exact;
    row["ratio_to_exact"] = std::exp(difference);
    row["z_exact"] = number(difference / number_at(row, "standard_error"));
  }
}

/// Largest deviations from the exact values over the rows of one fit; null where there are none.
Json agreement_with_exact(const Json& rows, double beta, double level) {
  double ratio = 0.0, z = 0.0;
  std::size_t count = 0;
  for (const Json& row : rows) {
    if (row.at("inverse_temperature") != beta || row.at("level") != level || !row.contains("z_exact"))
      continue;
    ratio = std::max(ratio, std::abs(row.at("ratio_to_exact").get<double>() - 1.0));
    z = std::max(z, std::abs(number_at(row, "z_exact")));
    ++count;
  }
  if (count == 0) return nullptr;
  return {{"rows", count},
          {"largest_relative_error", ratio},
          {"largest_z", z},
          {"passed", z < 3.0 && ratio < 0.05}};
}

std::string cell(const Json& row, const char* key, const char* format = "{:.4g}") {
  if (!row.contains(key)) return "-";
  const Json& value = row.at(key);
  if (value.is_number()) return report::with_minus(fmt::format(fmt::runtime(format), value.get<double>()));
  return value.is_string() ? report::escaped(value.get<std::string>()) : "-";
}

void write_report(const Question& question, const Setting& setting, const Json& rows, const Json& fits) {
  std::vector<report::Section> sections;
  for (const Json& fit : fits) {
    const double beta = fit.at("inverse_temperature"), level = fit.at("level");
    plot::Markers measured{.x = {}, .y = {}, .error = {}, .label = "N particles"};
    for (const Json& row : rows) {
      if (row.at("inverse_temperature") != beta || row.at("level") != level || !row.at("rate").is_number())
        continue;
      measured.x.push_back(row.at("count"));
      measured.y.push_back(row.at("rate"));
      measured.error.push_back(number_at(row, "standard_error") / row.at("count").get<double>());
    }
    if (measured.x.empty()) continue;
    const double low = *std::min_element(measured.x.begin(), measured.x.end()),
                 high = *std::max_element(measured.x.begin(), measured.x.end());
    plot::Curve fitted{.x = {}, .y = {}, .label = "fit"},
        limit{.x = {low, high}, .y = {}, .label = "density, N = ∞", .ink = plot::Ink::Black, .dashed = true};
    const std::vector<double> corrections = fit.at("corrections");
    for (std::size_t i = 0; i < std::min(corrections.size(), measured.x.size()); ++i) {
      const double n = measured.x[i];
      fitted.x.push_back(n);
      fitted.y.push_back(fit.at("rate").get<double>() + (corrections[i] + fit.at("offset").get<double>() +
                                                         fit.at("inverse_coefficient").get<double>() / n) /
                                                            n);
    }
    plot::Figure figure{.title = fmt::format("β = {:g}, {}", beta, event_text(question.side, level)),
                        .x = {.label = "N", .logarithmic = true},
                        .y = {.label = "-(1/N) log P"},
                        .layers = {fitted, measured}};
    if (fit.at("rate_theory").is_number()) {
      limit.y = {fit.at("rate_theory"), fit.at("rate_theory")};
      figure.layers.emplace_back(limit);
    }
    sections.push_back({.title = figure.title,
                        .text = "Rate at finite N, its fit, and the rate function of the density.",
                        .figures = {{fmt::format("rate_{}", sections.size() + 1), figure, figure.title}}});
  }
  std::vector<std::vector<std::string>> lines;
  for (const Json& row : rows) {
    lines.push_back(
        {cell(row, "count"), cell(row, "inverse_temperature"), cell(row, "level"), cell(row, "method"),
         cell(row, "log_probability", "{:.4f}"), cell(row, "standard_error", "{:.4f}"),
         cell(row, "exact_log_probability", "{:.4f}"), cell(row, "ratio_to_exact", "{:.3f}"),
         cell(row, "z_exact", "{:.2f}"), cell(row, "rate", "{:.5f}"), cell(row, "rate_theory", "{:.5f}"),
         fmt::format("{}", row.at("windows").size()), cell(row, "least_overlap", "{:.2f}"),
         cell(row, "autocorrelation_time", "{:.1f}"), cell(row, "acceptance", "{:.2f}"),
         cell(row, "effective_samples", "{:.0f}"), cell(row, "cpu_seconds", "{:.1f}"), cell(row, "status")});
  }
  std::vector<std::vector<std::string>> verdicts;
  for (const Json& fit : fits) {
    verdicts.push_back(
        {cell(fit, "inverse_temperature"), cell(fit, "level"), cell(fit, "rate", "{:.6f}"),
         cell(fit, "standard_error", "{:.6f}"), cell(fit, "rate_theory", "{:.6f}"),
         fit.contains("z") ? cell(fit, "z", "{:.2f}") : "-",
         fit.contains("passed") ? (fit.at("passed").get<bool>() ? "agrees" : "differs") : "-"});
  }
  std::filesystem::create_directories(setting.directory / "figures");
  std::string page = report::page_start("Large deviations: " + question.name);
  page += "<h1>" + report::escaped(question.name) + "</h1>\n<p>" +
          report::escaped(description(question.model)) + "</p>\n" + report::made_by(setting.command_line());
  page += report::table(
      {"N", "β", "level", "method", "log P", "error", "exact", "ratio", "z", "rate", "rate, density",
       "windows", "overlap", "τ", "acceptance", "samples", "CPU seconds", "status"},
      lines);
  if (!verdicts.empty())
    page += report::table({"β", "level", "I, N → ∞", "error", "I, density", "z", "verdict"}, verdicts);
  page += report::figures(sections, setting.directory / "figures", setting.command_line());
  page += report::page_end();
  io::write_text(setting.directory / "report.html", page);
}

}  // namespace

rare_event::Statistic statistic_of(const StatisticChoice& choice, const std::vector<double>& target) {
  switch (choice.kind) {
    case Kind::Mean:
    case Kind::Moment:
    case Kind::Linear:
      return rare_event::mean_of("g", [choice](std::span<const double> x) { return function_of(choice, x); });
    case Kind::Largest:
      return rare_event::largest_of("g",
                                    [choice](std::span<const double> x) { return function_of(choice, x); });
    case Kind::KernelEntry:
      return {.name = "K(z, z')",
              .kind = rare_event::Statistic::Kind::Mean,
              .component_count = 1,
              .components = feature_products(choice)};
    case Kind::KernelDistance: {
      const std::vector<double> weights = pair_weights(choice);
      expects(target.size() == weights.size(), "one target per pair of points");
      return {.name = "|K - K*|",
              .kind = rare_event::Statistic::Kind::Distance,
              .component_count = weights.size(),
              .components = feature_products(choice),
              .target = target,
              .weights = weights};
    }
  }
  expects(false, "a statistic of a known kind");
  return {};
}

Outcome run(const Question& question, const Setting& setting) {
  Outcome outcome;
  const bool writes = setting.ranks.first();
  const std::filesystem::path kept = setting.directory / "rows.json";
  if (writes) io::write_text(setting.directory / "config.toml", setting.resolved_config);
  Json rows = sweep::kept_rows(setting);
  std::vector<Limit> limits;
  for (const double beta : question.inverse_temperatures) limits.push_back(limit_of(question, beta));

  const std::size_t total =
      question.inverse_temperatures.size() * question.levels.size() * question.counts.size();
  std::size_t done = 0;
  for (std::size_t b = 0; b < limits.size() && outcome.status == RunStatus::Completed; ++b) {
    const double beta = question.inverse_temperatures[b];
    if (question.statistic.kind == Kind::KernelDistance && limits[b].target.empty()) {
      outcome = {RunStatus::NotConverged,
                 "the target of the kernel distance is the minimiser of F, which was not found", ""};
      break;
    }
    const rare_event::Statistic statistic = statistic_of(question.statistic, limits[b].target);
    for (std::size_t l = 0; l < question.levels.size() && outcome.status == RunStatus::Completed; ++l) {
      for (const std::size_t count : question.counts) {
        const double level = question.levels[l];
        if (setting.progress)
          setting.progress(
              {done, total,
               fmt::format("N = {}, beta = {:g}, {}", count, beta, event_text(question.side, level))});
        const bool known = std::any_of(rows.begin(), rows.end(), [&](const Json& row) {
          return row.at("count") == count && row.at("inverse_temperature") == beta &&
                 row.at("level") == level;
        });
        ++done;
        if (known) continue;
        rare_event::TailProbability measured;
        Json row =
            row_of(question, statistic, count, beta, level, limits[b].rates[l].first, measured, setting);
        if (setting.ranks.any(measured.status == RunStatus::Interrupted)) {
          outcome = {RunStatus::Interrupted, fmt::format("{} of {} rows are done", rows.size(), total), ""};
          break;
        }
        rows.push_back(std::move(row));
        if (writes) io::write_text(kept, rows.dump(1) + "\n");
      }
    }
  }

  if (!writes) return outcome;
  add_exact_values(question, rows);
  Json fits = Json::array(), temperature_fits = Json::array();
  for (std::size_t b = 0; b < limits.size(); ++b) {
    for (std::size_t l = 0; l < question.levels.size(); ++l) {
      Json fit = fit_across_counts(question, rows, question.inverse_temperatures[b], l, limits[b]);
      if (fit.is_null()) continue;
      Json agreement = agreement_with_exact(rows, question.inverse_temperatures[b], question.levels[l]);
      if (!agreement.is_null()) fit["exact_probabilities"] = std::move(agreement);
      fits.push_back(std::move(fit));
    }
  }
  if (outcome.status == RunStatus::Completed) {
    for (const std::size_t count : question.counts) {
      for (const double level : question.levels) {
        Json fit = fit_across_temperatures(question, rows, count, level);
        if (!fit.is_null()) temperature_fits.push_back(std::move(fit));
      }
    }
    for (const Json& row : rows) {
      if (row.at("status") == "completed") continue;
      outcome.status = row.at("status") == "not_finite" ? RunStatus::NotFinite : RunStatus::NotConverged;
      outcome.message =
          fmt::format("N = {}: {}", row.at("count").get<std::size_t>(), row.at("message").get<std::string>());
      break;
    }
  }
  const Json summary{{"type", "large_deviations"},
                     {"status", name(outcome.status)},
                     {"message", outcome.message},
                     {"model", description(question.model)},
                     {"rows", rows},
                     {"fit", fits.empty() ? Json(Json::object()) : fits.front()},
                     {"fits", fits},
                     {"temperature_fits", temperature_fits}};
  outcome.summary = summary.dump(1) + "\n";
  io::write_text(setting.directory / "summary.json", outcome.summary);
  if (outcome.status != RunStatus::Interrupted) write_report(question, setting, rows, fits);
  return outcome;
}

}  // namespace rieszflow::large_deviations
