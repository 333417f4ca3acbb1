#include "experiments/side_by_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/entropy.hpp"
#include "analysis/estimate.hpp"
#include "analysis/histogram.hpp"
#include "core/fingerprint.hpp"
#include "experiments/comparison.hpp"
#include "experiments/report.hpp"
#include "io/run_file.hpp"
#include "model/description.hpp"
#include "model/mean_field.hpp"
#include "solvers/particle/timestep_choice.hpp"
#include "summation/energy.hpp"
#include "summation/identities.hpp"

namespace rieszflow::side_by_side {

namespace {

using Json = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

constexpr double checkpoint_seconds = 60.0;  ///< longest time without a checkpoint, when outputs are rarer

/// Which side a checkpoint belongs to; the density runs first, because the particles are compared with it.
enum class Stage : std::int64_t { Density = 0, Particles = 1, Finished = 2 };

/// Output times; every `stride`-th of them is a snapshot, and so are the first and the last.
struct Outputs {
  Schedule schedule;
  std::size_t stride = 1;

  bool is_snapshot(double time) const {
    const auto& times = schedule.times();
    const auto index =
        static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
    return index % stride == 0 || index + 1 == times.size();
  }
};

Outputs outputs_of(const Question& question) {
  const double ratio = question.snapshots_every / question.output_every;
  return {Schedule::every(question.output_every, 0.0, question.end),
          std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(ratio)))};
}

/// Raw moments of orders 1 to 4: integral x^k rho in d = 1; per axis above.
Json moments_json(const std::vector<std::vector<double>>& moments) {
  Json json = Json::array();
  for (const auto& axes : moments) json.push_back(axes.size() == 1 ? Json(axes[0]) : Json(axes));
  return json;
}

/// integral x_k^p rho of the piecewise constant density, p = 1..4; (power, axis).
std::vector<std::vector<double>> moments(const Density& density) {
  const Grid& grid = density.grid;
  std::vector<std::vector<double>> result(4, std::vector<double>(grid.dimension(), 0.0));
  std::vector<double> center(grid.dimension());
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    grid.cell_center(cell, center);
    const double fraction = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell];
    const double cell_mass = density.averages[cell] * grid.cell_volume() * fraction;
    for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
      const double h = grid.spacing(axis), a = center[axis] - h / 2, b = center[axis] + h / 2;
      for (int power = 1; power <= 4; ++power) {
        result[static_cast<std::size_t>(power - 1)][axis] +=
            cell_mass * (std::pow(b, power + 1) - std::pow(a, power + 1)) / ((power + 1) * h);
      }
    }
  }
  return result;
}

/// Mean over particles and replicas of x_k^p, p = 1..4; (power, axis).
std::vector<std::vector<double>> moments(const ParticleEnsemble& ensemble) {
  const std::size_t d = ensemble.dimension;
  std::vector<std::vector<double>> result(4, std::vector<double>(d, 0.0));
  const double weight = static_cast<double>(d) / static_cast<double>(ensemble.positions.size());
  for (std::size_t i = 0; i < ensemble.positions.size(); ++i) {
    double power = weight;
    for (std::size_t p = 0; p < 4; ++p) result[p][i % d] += power *= ensemble.positions[i];
  }
  return result;
}

/// What the ranks of a run need to begin a side together: the first one's.
struct Start {
  Stage stage = Stage::Finished;
  Clock clock{};
  double next_timestep = 0.0, energy_defect = 0.0;
  std::vector<double> state{};

  void share(const Ranks& ranks) {
    if (ranks.alone()) return;
    auto number = static_cast<std::int64_t>(stage);
    std::vector<double> numbers{clock.time, next_timestep, energy_defect};
    ranks.share(number);
    ranks.share(clock.step);
    ranks.share(numbers);
    ranks.share(state);
    stage = static_cast<Stage>(number);
    clock.time = numbers[0], next_timestep = numbers[1], energy_defect = numbers[2];
  }
};

MeanField mean_field(const Question& question, const Ranks& ranks) {
  const DensitySide& side = *question.density;
  return {question.model,
          grid_on(question.model.domain, side.cells),
          {.threads = question.threads, .weights = side.weights, .ranks = ranks}};
}

particle::Options particle_options(const Question& question, const Ranks& ranks) {
  particle::Options options = question.particles->options;
  options.ranks = ranks;
  return options;
}

/// A rank that is not the first: takes its share of the work and keeps nothing.
Outcome assist(const Question& question, const Ranks& ranks) {
  const Schedule schedule = outputs_of(question).schedule;
  RunStatus status = RunStatus::Completed;
  const auto note = [&](RunStatus ended) { status = status == RunStatus::Completed ? ended : status; };
  for (Start start; start.share(ranks), start.stage != Stage::Finished;) {
    if (start.stage == Stage::Density) {
      const MeanField field = mean_field(question, ranks);
      pde::State state{.density = {.grid = field.grid(), .averages = start.state},
                       .clock = start.clock,
                       .next_timestep = start.next_timestep,
                       .energy_defect = start.energy_defect};
      note(pde::run(field, state, question.density->options, schedule, {}, {}).status);
    } else {
      particle::State state{.ensemble = {.replica_count = question.particles->replicas,
                                         .particle_count = question.particles->count,
                                         .dimension = dimension(question.model.domain),
                                         .positions = start.state},
                            .clock = start.clock};
      note(particle::run(question.model, state, particle_options(question, ranks), schedule, {}, {}).status);
    }
  }
  return {.status = status, .message = "", .summary = ""};
}

class Run {
 public:
  Run(const Question& question, const Setting& setting)
      : question_(question), setting_(setting), outputs_(outputs_of(question)) {}

  Outcome operator()() {
    open();
    if (question_.density && stage_ == Stage::Density) run_density();
    if (question_.particles && stage_ == Stage::Particles && !interrupted_) run_particles();
    Start{}.share(setting_.ranks);
    return finish();
  }

 private:
  // ------------------------------------------------------------------------------------------------ run file

  /// A new run file, or the one of an interrupted run with everything after its checkpoint dropped.
  void open() {
    const std::optional<io::Checkpoint> checkpoint =
        setting_.resume ? io::load_checkpoint(setting_.directory) : std::nullopt;
    if (!checkpoint) {
      if (setting_.resume)
        std::filesystem::remove(run_path());  // killed before its first checkpoint: begins again
      file_ = io::RunFile::create(run_path(), manifest());
      io::write_text(setting_.directory / "config.toml", setting_.resolved_config);
      if (!question_.density) stage_ = Stage::Particles;
      return;
    }
    stage_ = static_cast<Stage>(checkpoint->integers.at("stage"));
    status_ = static_cast<RunStatus>(checkpoint->integers.at("status"));
    message_ = checkpoint->texts.at("message");
    Clock clock{.step = checkpoint->integers.at("step"), .time = checkpoint->numbers.at("time")};
    const std::vector<double>& state = checkpoint->arrays.at("state");
    restored_ = !state.empty();  // a stage that had not begun has no state yet
    if (!restored_) clock = {.step = -1, .time = -std::numeric_limits<double>::infinity()};
    file_ = io::RunFile::resume(run_path());
    if (stage_ == Stage::Density) {
      if (restored_) {
        density_.density = {.grid = grid_on(question_.model.domain, question_.density->cells),
                            .averages = state};
        density_.clock = clock;
        density_.next_timestep = checkpoint->numbers.at("next_timestep");
        density_.energy_defect = checkpoint->numbers.at("energy_defect");
      }
      file_->drop_after("observables/density", clock);
      file_->drop_after("density", clock);
    } else if (stage_ == Stage::Particles) {
      if (restored_) {
        particles_.ensemble = {.replica_count = question_.particles->replicas,
                               .particle_count = question_.particles->count,
                               .dimension = dimension(question_.model.domain),
                               .positions = state};
        particles_.clock = clock;
        energy_scale_ = checkpoint->numbers.at("energy_scale");
      }
      for (const char* prefix : {"observables/particles", "observables/comparison", "particles"}) {
        file_->drop_after(prefix, clock);
      }
    }
    restore_density_snapshots(stage_ == Stage::Density ? clock.time : question_.end);
  }

  io::Manifest manifest() const {
    io::Manifest attributes(setting_.provenance.begin(), setting_.provenance.end());
    attributes["name"] = question_.name;
    attributes["model"] = description(question_.model);
    attributes["config"] = setting_.resolved_config;
    attributes["seed"] = std::to_string(question_.seed);
    attributes["histogram_bins"] = std::to_string(question_.comparison_bins);
    for (const std::string& sentence : warnings(question_)) attributes["warning"] += sentence;
    attributes["status"] = "running";
    return attributes;
  }

  std::filesystem::path run_path() const { return setting_.directory / "run.h5"; }

  /// The densities up to `time` that the particles are compared with.
  void restore_density_snapshots(double time) {
    const io::RunReader reader(run_path());
    const auto clocks = reader.density_clocks();
    for (std::size_t row = 0; row < clocks.size() && clocks[row].time <= time; ++row) {
      density_snapshots_.emplace_back(clocks[row].time, reader.density(row));
    }
  }

  /// Publishes run.h5 and a checkpoint that belongs to it.
  void commit(const Clock& clock) {
    file_->commit();
    io::Checkpoint checkpoint;
    checkpoint.integers["stage"] = static_cast<std::int64_t>(stage_);
    checkpoint.integers["status"] = static_cast<std::int64_t>(status_);
    checkpoint.texts["message"] = message_;
    checkpoint.integers["step"] = clock.step;
    checkpoint.numbers["time"] = clock.time;
    checkpoint.numbers["next_timestep"] = density_.next_timestep;
    checkpoint.numbers["energy_defect"] = density_.energy_defect;
    checkpoint.numbers["energy_scale"] = energy_scale_;
    const std::vector<double>& state =
        stage_ == Stage::Density ? density_.density.averages : particles_.ensemble.positions;
    checkpoint.arrays["state"] =
        clock.step > 0 ? state : std::vector<double>{};  // else the stage begins again
    io::save_checkpoint(setting_.directory, checkpoint);
    last_commit_ = SteadyClock::now();
  }

  void commit_when_due(const Clock& clock) {
    if (file_->commit_is_due()) commit(clock);
  }

  void append(const std::string& name, const std::string& units, const std::string& meaning,
              const Clock& clock, std::span<const double> value,
              std::span<const double> standard_error = {}) {
    file_->append({.name = name,
                   .units = units,
                   .meaning = meaning,
                   .columns = value.size(),
                   .has_standard_error = !standard_error.empty()},
                  clock, value, standard_error);
  }
  void append(const std::string& name, const std::string& units, const std::string& meaning,
              const Clock& clock, double value) {
    append(name, units, meaning, clock, std::span(&value, 1));
  }
  void append(const std::string& name, const std::string& units, const std::string& meaning,
              const Clock& clock, const Estimate& estimate) {
    append(name, units, meaning, clock, std::span(&estimate.value, 1),
           std::span(&estimate.standard_error, 1));
  }

  // ------------------------------------------------------------------------------------------------ both
  // sides

  /// Progress, the checkpoint when long without one, and the user's interruption: asked after every step.
  StopRule stop_rule(const char* part) {
    part_start_ = SteadyClock::now();
    part_start_time_ = std::numeric_limits<double>::quiet_NaN();
    return [this, part](const Clock& clock) -> std::optional<RunStatus> {
      if (std::isnan(part_start_time_)) part_start_time_ = clock.time;
      if (setting_.progress && seconds_since(last_progress_) > 0.2) {
        last_progress_ = SteadyClock::now();
        const double done = (clock.time - part_start_time_) / (question_.end - part_start_time_);
        const double left = done > 0.0 ? seconds_since(part_start_) * (1.0 - done) / done
                                       : std::numeric_limits<double>::quiet_NaN();
        setting_.progress({part, clock.time, question_.end, left});
      }
      if (!divergence_.empty()) return RunStatus::NotConverged;
      if (setting_.interrupted && setting_.interrupted()) return RunStatus::Interrupted;
      if (seconds_since(last_commit_) > checkpoint_seconds) commit(clock);
      return std::nullopt;
    };
  }

  /// The end of one side: an interruption leaves its stage to a resumed run; the first fault is the run's
  /// status.
  void conclude(const RunResult& result, const char* part, Stage next) {
    interrupted_ = result.status == RunStatus::Interrupted;
    if (!interrupted_) {
      if (status_ == RunStatus::Completed && result.status != RunStatus::Completed) {
        status_ = result.status;
        message_ = std::string(part) + ": " + (divergence_.empty() ? result.message : divergence_);
      }
      stage_ = next;
      restored_ = false;
    }
    commit(result.last_good);
  }

  void run_density() {
    const auto begin = SteadyClock::now();
    const MeanField field = mean_field(question_, setting_.ranks);
    if (!restored_) density_.density = cell_averages(question_.initial, question_.model.domain, field.grid());
    const auto observe = [this](const Clock& clock, const pde::State& state) {
      observe_density(clock, state);
    };
    Start{.stage = Stage::Density,
          .clock = density_.clock,
          .next_timestep = density_.next_timestep,
          .energy_defect = density_.energy_defect,
          .state = density_.density.averages}
        .share(setting_.ranks);
    const pde::Result result = pde::run(field, density_, question_.density->options, outputs_.schedule,
                                        observe, stop_rule("density"));
    timing_["density"] = {{"seconds", seconds_since(begin)},
                          {"accepted_steps", result.statistics.accepted},
                          {"rejected_for_error", result.statistics.rejected_error},
                          {"rejected_for_energy", result.statistics.rejected_energy},
                          {"rejected_for_solve", result.statistics.rejected_solve},
                          {"rejected_for_state", result.statistics.rejected_state},
                          {"limited_steps", result.statistics.limited}};
    conclude(result, "density", question_.particles ? Stage::Particles : Stage::Finished);
  }

  void observe_density(const Clock& clock, const pde::State& state) {
    const FreeEnergy& energy = state.diagnostics.energy;
    append("density/free_energy", "energy", "F of (5)", clock, energy.free_energy);
    append("density/potential_energy", "energy", "integral V rho", clock, energy.potential_energy);
    append("density/interaction_energy", "energy", "half the double integral of W rho rho", clock,
           energy.interaction_energy);
    append("density/total_energy", "energy", "potential plus interaction energy", clock,
           energy.potential_energy + energy.interaction_energy);
    append("density/entropy", "1", "differential entropy, minus integral rho log rho", clock, energy.entropy);
    append("density/dissipation", "energy/time", "-dF/dt of (6)", clock, state.diagnostics.dissipation);
    append("density/energy_defect", "energy", "F(t) - F(0) plus the integral of the dissipation", clock,
           state.energy_defect);
    append("density/mass", "1", "integral rho", clock, mass(state.density));
    append("density/mean", "length", "integral x rho", clock, mean(state.density));
    append("density/second_moment", "length^2", "integral |x|^2 rho", clock, second_moment(state.density));
    append("density/minimum", "1/volume", "smallest cell average", clock,
           *std::min_element(state.density.averages.begin(), state.density.averages.end()));
    if (outputs_.is_snapshot(clock.time)) {
      file_->append_density(clock, state.density);
      density_snapshots_.emplace_back(clock.time, state.density);
    }
    commit_when_due(clock);
  }

  void run_particles() {
    const auto begin = SteadyClock::now();
    const ParticleSide& side = *question_.particles;
    if (!restored_) {
      particles_.ensemble =
          sample(question_.initial, question_.model.domain, side.replicas, side.count, question_.seed);
    }
    pair_sum_ = std::make_shared<PairSum>(question_.model, side.count, side.options.summation);
    particle::Options options = particle_options(question_, setting_.ranks);
    options.pair_sum = pair_sum_;
    const auto observe = [this](const Clock& clock, const particle::State& state) {
      observe_particles(clock, state);
    };
    Start{.stage = Stage::Particles, .clock = particles_.clock, .state = particles_.ensemble.positions}.share(
        setting_.ranks);
    const particle::Result result = particle::run(question_.model, particles_, options, outputs_.schedule,
                                                  observe, stop_rule("particles"));
    timing_["particles"] = {{"seconds", seconds_since(begin)},
                            {"force_evaluations", result.statistics.force_evaluations},
                            {"substeps", result.statistics.substeps},
                            {"acceptance", result.statistics.acceptance()},
                            {"summation", pair_sum_->method_name()}};
    conclude(result, "particles", Stage::Finished);
  }

  void observe_particles(const Clock& clock, const particle::State& state) {
    const ParticleEnsemble& ensemble = state.ensemble;
    const std::size_t replicas = ensemble.replica_count;
    std::vector<double> potential(replicas), pair(replicas), functional(replicas), limit(replicas);
    energies(question_.model, *pair_sum_, ensemble, potential, pair);
    functional_values(question_.model, ensemble, functional);
    mean_field_functional_values(question_.model, ensemble, limit);
    const EntropyEstimate entropy_of_law = entropy(ensemble, question_.model.domain);
    const double beta = question_.model.inverse_temperature;
    const auto per_replica = [&](auto&& value) {
      std::vector<double> values(replicas);
      for (std::size_t replica = 0; replica < replicas; ++replica) values[replica] = value(replica);
      return mean_estimate(values);
    };
    const auto interaction = [&](std::size_t r) {
      const std::size_t count = ensemble.particle_count;
      return limit[r] + (count < 2 ? 0.0 : mean_field_interaction_energy(pair[r], count));
    };
    for (std::size_t r = 0; r < replicas; ++r) watch_energy(clock, potential[r] + pair[r] + functional[r]);
    append("particles/potential_energy", "energy", "mean of V", clock, mean_estimate(potential));
    append("particles/interaction_energy", "energy",
           "estimate of half the double integral of W rho rho plus the functionals of rho", clock,
           per_replica(interaction));
    append("particles/total_energy", "energy", "potential plus interaction energy", clock,
           per_replica([&](std::size_t r) { return potential[r] + interaction(r); }));
    append("particles/hamiltonian", "energy", "H_N of (1)", clock,
           per_replica([&](std::size_t r) { return potential[r] + pair[r] + functional[r]; }));
    if (entropy_of_law.estimate.samples > 0) {
      append("particles/entropy", "1", "differential entropy of the law of one particle", clock,
             entropy_of_law.estimate);
      append("particles/free_energy", "energy", "estimate of F of (5)", clock,
             per_replica([&](std::size_t r) {
               return potential[r] + interaction(r) - entropy_of_law.replica_values[r] / beta;
             }));
    }
    append_moments(clock, ensemble);
    append_identities(clock, ensemble);
    if (outputs_.is_snapshot(clock.time)) {
      file_->append_positions(clock, ensemble);
      if (question_.compare) compare(clock, ensemble);
    }
    commit_when_due(clock);
  }

  /// In free space an explicit step that is too long for the force throws particles further and further out,
  /// through finite numbers for a long time. The force only lowers H_N, and noise keeps it within a few d /
  /// beta of a minimum: a growth by a factor of a million over |H_N| + d / beta at the start is the step's
  /// doing.
  void watch_energy(const Clock& clock, double hamiltonian) {
    constexpr double excess = 1e6;
    if (!std::holds_alternative<WholeSpace>(question_.model.domain)) return;
    const double thermal =
        static_cast<double>(dimension(question_.model.domain)) / question_.model.inverse_temperature;
    if (clock.time == 0.0) energy_scale_ = std::max(energy_scale_, std::abs(hamiltonian) + thermal);
    if (divergence_.empty() && energy_scale_ > 0.0 && hamiltonian > excess * energy_scale_)
      divergence_ = fmt::format(
          "the energy per particle has grown to {:.3g} at time {:.6g}, from {:.3g} at the start: the "
          "timestep {:.3g} is too long for this force",
          hamiltonian, clock.time, energy_scale_, question_.particles->options.timestep);
  }

  void append_moments(const Clock& clock, const ParticleEnsemble& ensemble) {
    std::vector<double> value, standard_error;
    for (std::size_t axis = 0; axis < ensemble.dimension; ++axis) {
      const Estimate estimate = mean_estimate(means(ensemble, axis));
      value.push_back(estimate.value);
      standard_error.push_back(estimate.standard_error);
    }
    append("particles/mean", "length", "mean position", clock, value, standard_error);
    append("particles/second_moment", "length^2", "mean of |x|^2", clock,
           mean_estimate(second_moments(ensemble)));
  }

  /// Residuals that are zero on average in equilibrium, whatever the kernel: a diagnostic of every run.
  void append_identities(const Clock& clock, const ParticleEnsemble& ensemble) {
    std::vector<double> value, standard_error;
    std::string meaning;
    for (const Identity& identity : equilibrium_identities(question_.model, *pair_sum_, ensemble)) {
      const Estimate estimate = mean_estimate(identity.residuals);
      value.push_back(estimate.value);
      standard_error.push_back(estimate.standard_error);
      meaning += (meaning.empty() ? "zero in equilibrium: " : "; ") + identity.name;
    }
    if (!value.empty()) append("particles/identities", "1", meaning, clock, value, standard_error);
  }

  // ------------------------------------------------------------------------------------------------
  // comparison

  /// Distances between mu_N and rho at one time, each beside its expectation for N independent samples of
  /// rho.
  void compare(const Clock& clock, const ParticleEnsemble& ensemble) {
    const auto match = std::find_if(density_snapshots_.begin(), density_snapshots_.end(),
                                    [&](const auto& snapshot) { return snapshot.first == clock.time; });
    if (match == density_snapshots_.end()) return;
    for (const Distance& distance : distances(ensemble, match->second)) {
      append("comparison/" + distance.name, distance.units, distance.meaning, clock, distance.value);
      if (std::isnan(distance.reference)) continue;
      append("comparison/" + distance.name + "_reference", distance.units,
             distance.meaning + ", expected for N independent samples of rho", clock, distance.reference);
    }
  }

  // ------------------------------------------------------------------------------------------------ result

  Outcome finish() {
    const RunStatus ended = interrupted_ ? RunStatus::Interrupted : status_;
    file_->set_attribute("status", std::string(name(ended)) + (message_.empty() ? "" : ": " + message_));
    commit(stage_ == Stage::Density ? density_.clock : particles_.clock);
    if (!interrupted_) file_->finish();
    Outcome outcome{.status = ended, .message = message_, .summary = summary(ended).dump(2) + "\n"};
    io::write_text(setting_.directory / "summary.json", outcome.summary);
    if (setting_.progress) setting_.progress({"report", question_.end, question_.end, 0.0});
    write_report(setting_.directory);
    return outcome;
  }

  Json summary(RunStatus ended) const {
    const io::RunReader reader(run_path());
    Json json;
    json["status"] = name(ended);
    if (!message_.empty()) json["message"] = message_;
    if (const auto sentences = warnings(question_); !sentences.empty()) json["warnings"] = sentences;
    json["name"] = question_.name;
    json["model"] = {{"description", description(question_.model)},
                     {"domain", description(question_.model.domain)},
                     {"dimension", dimension(question_.model.domain)},
                     {"inverse_temperature", question_.model.inverse_temperature}};
    if (question_.particles) json["particles"] = particle_summary(reader);
    if (question_.density) json["density"] = density_summary(reader);
    if (question_.particles && question_.density && question_.compare)
      json["comparison"] = comparison_summary(reader);
    json["timing"] = timing_;
    json["timing"]["total_seconds"] = seconds_since(start_);
    json["threads"] = question_.threads;
    json["seed"] = question_.seed;
    for (const auto& [key, text] : setting_.provenance) json[key] = text;
    return json;
  }

  static bool has(const io::RunReader& reader, const std::string& series) {
    const auto names = reader.series_names();
    return std::find(names.begin(), names.end(), series) != names.end();
  }

  /// Last row of a series under `key`, a number or an array; its standard error under `key`_standard_error.
  static void add_final(Json& json, const io::RunReader& reader, const std::string& side,
                        const std::string& key) {
    if (!has(reader, side + "/" + key)) return;
    const io::Series series = reader.series(side + "/" + key);
    const auto last_row = [&](const std::vector<double>& rows) {
      const std::vector<double> row(rows.end() - static_cast<std::ptrdiff_t>(series.description.columns),
                                    rows.end());
      return row.size() == 1 ? Json(row[0]) : Json(row);
    };
    json["time"] = series.time.back();
    json[key] = last_row(series.value);
    if (!series.standard_error.empty()) json[key + "_standard_error"] = last_row(series.standard_error);
  }

  Json density_summary(const io::RunReader& reader) const {
    Json last;
    for (const char* key :
         {"mass", "free_energy", "entropy", "potential_energy", "interaction_energy", "total_energy",
          "dissipation", "energy_defect", "mean", "second_moment", "minimum"}) {
      add_final(last, reader, "density", key);
    }
    if (const auto clocks = reader.density_clocks(); !clocks.empty()) {
      const Density density = reader.density(clocks.size() - 1);
      last["moments"] = moments_json(moments(density));
      last["fingerprint"] = fingerprint(density.averages);
    }
    return {{"cells", question_.density->cells},
            {"scheme",
             question_.density->options.scheme ? pde::name(*question_.density->options.scheme) : "auto"},
            {"final", last}};
  }

  Json particle_summary(const io::RunReader& reader) const {
    Json last;
    for (const char* key : {"free_energy", "entropy", "potential_energy", "interaction_energy",
                            "total_energy", "hamiltonian", "mean", "second_moment", "identities"}) {
      add_final(last, reader, "particles", key);
    }
    if (const auto clocks = reader.position_clocks(); !clocks.empty()) {
      const ParticleEnsemble ensemble = reader.positions(clocks.size() - 1);
      last["moments"] = moments_json(moments(ensemble));
      last["fingerprint"] = fingerprint(ensemble.positions);
    }
    const ParticleSide& side = *question_.particles;
    return {{"count", side.count},
            {"replicas", side.replicas},
            {"scheme", particle::name(side.options.scheme)},
            {"timestep", side.options.timestep},
            {"final", last}};
  }

  Json comparison_summary(const io::RunReader& reader) const {
    Json json;
    if (has(reader, "particles/free_energy") && has(reader, "density/free_energy")) {
      const io::Series particles = reader.series("particles/free_energy");
      const io::Series density = reader.series("density/free_energy");
      const std::size_t rows = std::min(particles.time.size(), density.time.size());
      const auto head = [rows](const std::vector<double>& column) {
        return std::vector<double>(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(rows));
      };
      json["free_energy"] = {{"time", head(particles.time)},
                             {"particles", head(particles.value)},
                             {"standard_error", head(particles.standard_error)},
                             {"density", head(density.value)}};
    }
    for (const std::string& distance : distance_names()) {
      if (!has(reader, "comparison/" + distance)) continue;
      const io::Series series = reader.series("comparison/" + distance);
      Json entry = {{"name", distance},
                    {"time", series.time},
                    {"value", series.value},
                    {"standard_error", series.standard_error}};
      if (has(reader, "comparison/" + distance + "_reference")) {
        entry["reference"] = reader.series("comparison/" + distance + "_reference").value;
      }
      if (!json.contains("distance")) json["distance"] = entry;
      json["distances"].push_back(entry);
    }
    return json;
  }

  const Question& question_;
  const Setting& setting_;
  const Outputs outputs_;
  const SteadyClock::time_point start_ = SteadyClock::now();

  std::optional<io::RunFile> file_;
  Stage stage_ = Stage::Density;
  bool restored_ = false;  ///< the state of `stage_` came from a checkpoint
  bool interrupted_ = false;
  RunStatus status_ = RunStatus::Completed;  ///< of the mathematics
  std::string message_;
  pde::State density_;
  particle::State particles_;
  double energy_scale_ = 0.0;                ///< largest |H_N| + d / beta of a replica at the start
  std::string divergence_;                   ///< sentence, once the particles have left for infinity
  std::shared_ptr<const PairSum> pair_sum_;  ///< shared with the run
  std::vector<std::pair<double, Density>>
      density_snapshots_;  ///< (time, rho): what the particles are compared with
  Json timing_ = Json::object();
  SteadyClock::time_point last_commit_ = start_;
  SteadyClock::time_point last_progress_ = start_;
  SteadyClock::time_point part_start_ = start_;
  double part_start_time_ = 0.0;
};

}  // namespace

std::vector<std::string> warnings(const Question& question) {
  if (!question.particles || !(question.end > 0.0)) return {};
  const particle::Options& options = question.particles->options;
  const double interval = std::min(question.output_every, question.end);
  const double step = interval / std::ceil(interval / options.timestep);
  const double longest = particle::longest_stable_timestep(question.model, options.scheme);
  if (step < longest) return {};
  return {fmt::format(
      "particles.timestep is too long: a step of {:.4g} is unstable for the linear force of this model, from "
      "2/stiffness = {:.4g} on; the particles are thrown about and their averages mean nothing",
      step, longest)};
}

Outcome run(const Question& question, const Setting& setting) {
  return setting.ranks.first() ? Run(question, setting)() : assist(question, setting.ranks);
}

}  // namespace rieszflow::side_by_side
