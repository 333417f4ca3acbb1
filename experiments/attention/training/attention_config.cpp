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
  if (document.tables("dataset").empty())
    document.problem("dataset", "is missing; allowed: [[dataset]] with type = \"text\" or \"selection\"");
}

void read_phases(Table& table, Size size, Question& question) {
  PhaseAOptions options;
  options.steps = whole(table, "steps");
  options.batch_rows = whole(table, "batch_rows");
  options.last_inverse_temperature = table.number("last_inverse_temperature");
  options.repulsion_softening = table.number("softening");
  options.spheres = table.boolean("spheres");
  options.radius = table.number("radius");
  options.scheme =
      table.text("scheme") == "projected" ? particle::Scheme::Projected : particle::Scheme::Reflected;
  options.check_every = whole(table, "check_every");
  options.most_rows = whole(table, "most_rows");
  options.held_out_rows = whole(table, "held_out_rows");
  if (size != Size::Full) options.steps = std::min<std::size_t>(options.steps, size == Size::Quick ? 20 : 10);
  for (const double move : table.numbers("moves"))
    for (const double beta : table.numbers("first_inverse_temperatures"))
      for (const double repulsion : table.numbers("repulsions"))
        for (const double exponent : table.numbers("exponents")) {
          options.move = move;
          options.first_inverse_temperature = beta;
          options.repulsion = repulsion;
          options.repulsion_exponent = exponent;
          question.phases.push_back(options);
        }
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
  if (Table* table = document->table("study"); table != nullptr && table->good()) {
    size = table->text("size") == "smoke"   ? Size::Smoke
           : table->text("size") == "quick" ? Size::Quick
                                            : Size::Full;
    for (const std::string& word : table->texts("variants")) {
      const auto found = variant_named(word);
      if (!found)
        table->problem(
            "variants",
            fmt::format(
                "\"{}\" is no variant; allowed: uniform, softmax, softmax-qk, bag_of_bigrams, and favor, "
                "softplus, softmaxfeat, each with -qk or without, each alone or with /kernel, "
                "/norm_matched, /shuffled_labels, /no_repulsion, /backprop",
                word));
      else
        question.variants.push_back(*found);
    }
    question.seeds = whole(*table, "seeds");
    if (size != Size::Full)
      question.seeds = std::min<std::size_t>(question.seeds, size == Size::Quick ? 2 : 1);
    if (request.seed) table->fill("seed", *request.seed);
    question.seed = static_cast<std::uint64_t>(table->integer("seed"));
    question.corruption_rates = table->numbers("corruption_rates");
    question.calibration_bins = whole(*table, "calibration_bins");
    question.phase_a_at_start = table->boolean("phase_a_at_start");
  }
  read_sources(*document, request.config.parent_path(), size, question);
  if (Table* table = document->table("model"); table != nullptr && table->good())
    for (const std::int64_t dimension : table->integers("head_dimensions")) {
      const std::int64_t width = table->integer("width");
      if (width % dimension != 0)
        table->problem("width", fmt::format("{} is no multiple of the head dimension {}", width, dimension));
      for (const std::int64_t features : table->integers("features"))
        question.models.push_back(
            {.layers = whole(*table, "layers"),
             .heads = width > 0 ? static_cast<std::size_t>(width / dimension) : whole(*table, "heads"),
             .head_dimension = static_cast<std::size_t>(dimension),
             .feature_count = static_cast<std::size_t>(features),
             .feed_forward = whole(*table, "feed_forward")});
    }
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
  if (Table* table = document->table("phase_a"); table != nullptr && table->good()) {
    read_phases(*table, size, question);
    for (const Model& model : question.models)
      for (const double exponent : table->numbers("exponents"))
        if (exponent >= static_cast<double>(model.head_dimension))
          table->problem("exponents", fmt::format("{} must be below the dimension {} of a head", exponent,
                                                  model.head_dimension));
  }
  document->throw_problems();
  return {std::move(question), document->resolved()};
}

}  // namespace rieszflow::attention
