#include "experiments/attention/training/attention_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "experiments/attention_schema.hpp"

namespace rieszflow::attention {
namespace {

using config::Document;
using config::Table;

constexpr std::array<std::pair<std::string_view, Treatment>, 5> treatments{
    {{"kernel", Treatment::Kernel},
     {"norm_matched", Treatment::NormMatched},
     {"shuffled_labels", Treatment::ShuffledLabels},
     {"no_repulsion", Treatment::NoRepulsion},
     {"backprop", Treatment::Backprop}}};

enum class Size { Full, Quick, Smoke };

std::size_t whole(const Table& table, std::string_view key) {
  return static_cast<std::size_t>(table.integer(key));
}

void cut(Source& source, Size size) {
  if (size == Size::Full) return;
  const bool smoke = size == Size::Smoke;
  source.train_rows = std::min<std::size_t>(source.train_rows, smoke ? 400 : 2000);
  source.test_rows = std::min<std::size_t>(source.test_rows, smoke ? 200 : 1000);
  source.epochs = std::min(source.epochs, smoke ? 1.0 : 2.0);
}

void read_sources(Document& document, const std::filesystem::path& base, Size size, Question& question) {
  for (Table* table : document.tables("dataset")) {
    if (!table->good()) continue;
    Source source;
    source.epochs = table->number("epochs");
    source.dropout = table->number("dropout");
    source.word_dropout = table->number("word_dropout");
    source.learning_rate = table->number("learning_rate");
    source.embedding_rate = table->number("embedding_rate");
    source.weight_decay = table->number("weight_decay");
    source.common_scale = table->number("common_scale");
    if (table->type() == "text") {
      source.folder = std::filesystem::absolute(base / table->text("folder")).lexically_normal();
      table->fill("folder", source.folder.string());
      source.name = source.folder.filename().string();
      if (source.name.empty()) source.name = source.folder.parent_path().filename().string();
      source.longest = whole(*table, "longest");
      source.fewest = whole(*table, "fewest");
      source.fewest_bigrams = whole(*table, "fewest_bigrams");
      source.log_odds_smoothing = table->number("log_odds_smoothing");
      source.train_rows = whole(*table, "most_train_rows");
      source.test_rows = static_cast<std::size_t>(-1);
      std::error_code absent;
      if (!std::filesystem::exists(source.folder / "train.tsv", absent))
        table->problem("folder", fmt::format("has no train.tsv: {}", source.folder.string()));
      cut(source, size);
      question.sources.push_back(source);
      continue;
    }
    source.selection.keys = whole(*table, "keys");
    source.selection.values = whole(*table, "values");
    source.selection.targets = whole(*table, "targets");
    source.selection.label_noise = table->number("label_noise");
    source.train_rows = whole(*table, "train_rows");
    source.test_rows = whole(*table, "test_rows");
    cut(source, size);
    for (const std::int64_t length : table->integers("lengths")) {
      source.selection.length = static_cast<std::size_t>(length);
      source.longest = source.selection.length;
      source.name = fmt::format("selection-{}", length);
      if (source.selection.targets >= source.selection.length)
        table->problem("targets",
                       fmt::format("is {}, must be below the length {}", source.selection.targets, length));
      question.sources.push_back(source);
    }
  }
  for (std::size_t k = 0; k < question.sources.size(); ++k)
    for (std::size_t other = 0; other < k; ++other)
      if (question.sources[k].name == question.sources[other].name)
        document.problem("dataset", fmt::format("two of them are \"{}\"", question.sources[k].name));
  if (document.tables("dataset").empty())
    document.problem("dataset", "is missing; allowed: [[dataset]] with type = \"text\" or \"selection\"");
}

/// The values of all lists, of which a regime is the product.
struct Axes {
  std::vector<std::size_t> sources;
  std::vector<Variant> variants;
  std::size_t seeds = 1;
  std::vector<std::int64_t> head_dimensions, features;
  std::vector<double> moves, inverse_temperatures, repulsions, exponents;
  std::vector<bool> spheres;
};

/// What a config says besides its lists.
struct Fixed {
  Model model;
  std::int64_t width = 0;  ///< of the encoder; 0: heads of each dimension
  PhaseAOptions phase;
};

void read_model(const Table& table, Fixed& fixed, Axes& axes) {
  fixed.model = {.layers = whole(table, "layers"),
                 .heads = whole(table, "heads"),
                 .feed_forward = whole(table, "feed_forward")};
  fixed.width = table.integer("width");
  axes.head_dimensions = table.integers("head_dimensions");
  axes.features = table.integers("features");
}

std::vector<bool> spheres(Table& table) {
  std::vector<bool> out;
  for (const std::string& word : table.texts("norms")) {
    if (word != "held" && word != "free")
      table.problem("norms", fmt::format("\"{}\" is not allowed; allowed: \"held\", \"free\"", word));
    out.push_back(word == "held");
  }
  return out;
}

void read_phase_a(Table& table, Size size, Fixed& fixed, Axes& axes) {
  PhaseAOptions& options = fixed.phase;
  options.steps = whole(table, "steps");
  options.batch_rows = whole(table, "batch_rows");
  options.last_inverse_temperature = table.number("last_inverse_temperature");
  options.repulsion_softening = table.number("softening");
  options.radius = table.number("radius");
  options.scheme =
      table.text("scheme") == "projected" ? particle::Scheme::Projected : particle::Scheme::Reflected;
  options.check_every = whole(table, "check_every");
  options.most_rows = whole(table, "most_rows");
  options.held_out_rows = whole(table, "held_out_rows");
  if (size != Size::Full) options.steps = std::min<std::size_t>(options.steps, size == Size::Quick ? 20 : 10);
  axes.moves = table.numbers("moves");
  axes.inverse_temperatures = table.numbers("first_inverse_temperatures");
  axes.repulsions = table.numbers("repulsions");
  axes.exponents = table.numbers("exponents");
  axes.spheres = spheres(table);
}

std::vector<Variant> variants(Table& table) {
  std::vector<Variant> out;
  for (const std::string& word : table.texts("variants")) {
    const auto found = variant_named(word);
    if (!found)
      table.problem(
          "variants",
          fmt::format(
              "\"{}\" is no variant; allowed: uniform, softmax, softmax-qk, bag_of_bigrams, and favor, "
              "softplus, softmaxfeat, each with -qk or without, each alone or with /kernel, "
              "/norm_matched, /shuffled_labels, /no_repulsion, /backprop",
              word));
    else
      out.push_back(*found);
  }
  return out;
}

std::size_t seeds(const Table& table, Size size) {
  const std::size_t most = size == Size::Full ? static_cast<std::size_t>(-1) : size == Size::Quick ? 2 : 1;
  return std::min(whole(table, "seeds"), most);
}

/// The axes of one [[regime]]: its own where it names them, else the first value of each list.
Axes axes_of(Table& table, const Axes& all, Size size, const std::vector<Source>& sources) {
  Axes out = all;
  const auto first = [](auto& list) { list.resize(std::min<std::size_t>(list.size(), 1)); };
  first(out.sources);
  for (auto* list : {&out.head_dimensions, &out.features}) first(*list);
  for (auto* list : {&out.moves, &out.inverse_temperatures, &out.repulsions, &out.exponents}) first(*list);
  first(out.spheres);
  if (table.has("datasets")) {
    out.sources.clear();
    for (const std::string& word : table.texts("datasets")) {
      const auto found = std::find_if(sources.begin(), sources.end(),
                                      [&](const Source& source) { return source.name == word; });
      if (found == sources.end())
        table.problem("datasets", fmt::format("no [[dataset]] is \"{}\"", word));
      else
        out.sources.push_back(static_cast<std::size_t>(found - sources.begin()));
    }
  }
  if (table.has("variants")) out.variants = variants(table);
  if (table.has("seeds")) out.seeds = seeds(table, size);
  if (table.has("head_dimensions")) out.head_dimensions = table.integers("head_dimensions");
  if (table.has("features")) out.features = table.integers("features");
  if (table.has("moves")) out.moves = table.numbers("moves");
  if (table.has("first_inverse_temperatures"))
    out.inverse_temperatures = table.numbers("first_inverse_temperatures");
  if (table.has("repulsions")) out.repulsions = table.numbers("repulsions");
  if (table.has("exponents")) out.exponents = table.numbers("exponents");
  if (table.has("norms")) out.spheres = spheres(table);
  return out;
}

/// Problems are reported at `model` and `phase_a`, the tables that hold the lists.
Regime regime(const Axes& axes, const Fixed& fixed, Table& model, Table& phase_a) {
  Regime out{.sources = axes.sources, .variants = axes.variants, .seeds = axes.seeds};
  for (const std::int64_t dimension : axes.head_dimensions) {
    if (fixed.width % dimension != 0)
      model.problem(
          model.has("width") ? "width" : "head_dimensions",
          fmt::format("the width {} is no multiple of the head dimension {}", fixed.width, dimension));
    for (const double exponent : axes.exponents)
      if (exponent >= static_cast<double>(dimension))
        phase_a.problem("exponents",
                        fmt::format("{} must be below the dimension {} of a head", exponent, dimension));
    for (const std::int64_t features : axes.features) {
      Model one = fixed.model;
      if (fixed.width > 0) one.heads = static_cast<std::size_t>(fixed.width / dimension);
      one.head_dimension = static_cast<std::size_t>(dimension);
      one.feature_count = static_cast<std::size_t>(features);
      out.models.push_back(one);
    }
  }
  for (const double move : axes.moves)
    for (const double beta : axes.inverse_temperatures)
      for (const double repulsion : axes.repulsions)
        for (const double exponent : axes.exponents)
          for (const bool held : axes.spheres) {
            PhaseAOptions one = fixed.phase;
            one.move = move;
            one.first_inverse_temperature = beta;
            one.repulsion = repulsion;
            one.repulsion_exponent = exponent;
            one.spheres = held;
            out.phases.push_back(one);
          }
  return out;
}

/// A bag of bigrams is one of text.
void require_rows(const Axes& axes, const std::vector<Source>& sources, Table& table) {
  const bool has_text =
      std::ranges::any_of(axes.sources, [&](std::size_t k) { return sources[k].is_text(); });
  if (!has_text && std::ranges::all_of(axes.variants, [](const Variant& v) { return v.is_bag; }))
    table.problem("variants", "is bag_of_bigrams alone, which only a data set of type \"text\" has");
}

}  // namespace

std::optional<Variant> variant_named(const std::string& name) {
  Variant out{.name = name};
  if (name == "bag_of_bigrams") {
    out.is_bag = true;
    return out;
  }
  std::string kind = name.substr(0, name.find('/'));
  if (kind.ends_with("-qk")) {
    out.shared_query_key = true;
    kind.resize(kind.size() - 3);
  }
  const auto found = attention_kind_named(kind);
  if (!found || (out.shared_query_key && *found == AttentionKind::Uniform)) return std::nullopt;
  out.kind = *found;
  if (name.find('/') == std::string::npos) return out;
  if (!has_features(*found)) return std::nullopt;
  const std::string treatment = name.substr(name.find('/') + 1);
  for (const auto& [word, meaning] : treatments)
    if (word == treatment) {
      out.treatment = meaning;
      return out;
    }
  return std::nullopt;
}

Assembly assemble(const Request& request) {
  const auto document =
      read_config(request, "attention", "name = \"attention\"\n[[dataset]]\ntype = \"selection\"\n");
  Question question;
  question.name = name_of(*document, request, "attention");
  question.threads = request.threads;
  Size size = Size::Full;
  Axes axes;
  Fixed fixed;
  if (Table* table = document->table("study"); table != nullptr && table->good()) {
    size = table->text("size") == "smoke"   ? Size::Smoke
           : table->text("size") == "quick" ? Size::Quick
                                            : Size::Full;
    axes.variants = variants(*table);
    axes.seeds = seeds(*table, size);
    if (request.seed) table->fill("seed", *request.seed);
    question.seed = static_cast<std::uint64_t>(table->integer("seed"));
    question.corruption_rates = table->numbers("corruption_rates");
    question.calibration_bins = whole(*table, "calibration_bins");
    question.phase_a_at_start = table->boolean("phase_a_at_start");
  }
  read_sources(*document, request.config.parent_path(), size, question);
  Table* model = document->table("model");
  if (model != nullptr && model->good()) read_model(*model, fixed, axes);
  if (Table* table = document->table("training"); table != nullptr && table->good()) {
    question.warm_start_epochs = table->number("warm_start_epochs");
    if (size == Size::Smoke) question.warm_start_epochs = std::min(question.warm_start_epochs, 0.5);
    question.embedding_scale = table->number("embedding_scale");
    question.training = {.batch_rows = whole(*table, "batch_rows"),
                         .warm_up = table->number("warm_up"),
                         .clip = table->number("clip"),
                         .averaging = table->number("averaging"),
                         .checks_per_epoch = whole(*table, "checks_per_epoch")};
  }
  Table* phase_a = document->table("phase_a");
  if (phase_a != nullptr && phase_a->good()) read_phase_a(*phase_a, size, fixed, axes);
  for (std::size_t k = 0; k < question.sources.size(); ++k) axes.sources.push_back(k);
  if (model != nullptr && model->good() && phase_a != nullptr && phase_a->good()) {
    for (Table* table : document->tables("regime")) {
      if (!table->good()) continue;
      const Axes own = axes_of(*table, axes, size, question.sources);
      require_rows(own, question.sources, *table);
      question.regimes.push_back(regime(own, fixed, *table, *table));
    }
    if (document->tables("regime").empty()) {
      if (Table* table = document->table("study"); table != nullptr && table->good())
        require_rows(axes, question.sources, *table);
      question.regimes.push_back(regime(axes, fixed, *model, *phase_a));
    }
  }
  document->throw_problems();
  return {std::move(question), document->resolved()};
}

}  // namespace rieszflow::attention
