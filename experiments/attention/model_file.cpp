#include "experiments/attention/model_file.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/expects.hpp"
#include "core/fingerprint.hpp"
#include "io/files.hpp"

namespace rieszflow::text {
namespace {

using Json = nlohmann::ordered_json;
using attention::EncoderShape;

constexpr std::string_view magic = "rieszflow text model ";
constexpr int version = 2;
static_assert(std::endian::native == std::endian::little, "weights are stored as they lie in memory");

Json shape_json(const EncoderShape& s) {
  return {{"vocabulary", s.vocabulary},
          {"max_length", s.max_length},
          {"dimension", s.dimension},
          {"heads", s.heads},
          {"layers", s.layers},
          {"feed_forward", s.feed_forward},
          {"feature_count", s.feature_count},
          {"attention", std::string(name(s.kind))},
          {"shared_query_key", s.shared_query_key},
          {"bigrams", s.bigrams},
          {"pairs", s.pairs},
          {"classes", s.classes}};
}

EncoderShape shape_of(const Json& json) {
  EncoderShape s;
  json.at("vocabulary").get_to(s.vocabulary);
  json.at("max_length").get_to(s.max_length);
  json.at("dimension").get_to(s.dimension);
  json.at("heads").get_to(s.heads);
  json.at("layers").get_to(s.layers);
  json.at("feed_forward").get_to(s.feed_forward);
  json.at("feature_count").get_to(s.feature_count);
  json.at("shared_query_key").get_to(s.shared_query_key);
  json.at("bigrams").get_to(s.bigrams);
  json.at("pairs").get_to(s.pairs);
  json.at("classes").get_to(s.classes);
  const auto kind = attention::attention_kind_named(json.at("attention").get<std::string>());
  if (!kind) throw std::invalid_argument("an attention of no known kind");
  s.kind = *kind;
  return s;
}

std::size_t size_of(const attention::WeightArray& array) {
  std::size_t size = 1;
  for (const std::size_t extent : array.shape) size *= extent;
  return size;
}

/// Tokens and bigrams, those of pairs once more for what both sentences have.
std::size_t ids_of(const TextModel& model) {
  return model.vocabulary.size() * (model.weights.shape.pairs ? 2 : 1);
}

/// The line that ends at the first line break, which is taken off `text`; nothing where there is no line
/// break.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return {};
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

void write_model(const std::filesystem::path& file, const TextModel& model) {
  expects(ids_of(model) == model.weights.shape.vocabulary &&
              model.class_names.size() == model.weights.shape.classes && model.temperature > 0.0,
          "a vocabulary, class names and a temperature that fit the weights");
  attention::EncoderWeights weights = model.weights;
  Json arrays = Json::array();
  std::string numbers;
  for (const attention::WeightArray& array : attention::weight_arrays(weights)) {
    expects(array.values->size() == size_of(array), "weights of the shape");
    arrays.push_back({{"name", array.name}, {"shape", array.shape}});
    numbers.append(reinterpret_cast<const char*>(array.values->data()), array.values->size() * sizeof(float));
  }
  const Json header{{"description", model.description},       {"shape", shape_json(model.weights.shape)},
                    {"temperature", model.temperature},       {"classes", model.class_names},
                    {"words", model.vocabulary.word_count()}, {"tokens", model.vocabulary.tokens()},
                    {"bigrams", model.vocabulary.bigrams()},  {"arrays", arrays}};
  const std::string body = header.dump() + "\n" + numbers;
  io::write_text(file, fmt::format("{}{}\n{} {}\n", magic, version, fingerprint(body), body.size()) + body);
}

TextModel read_model(const std::filesystem::path& file) {
  const std::string content = io::read_text(file);
  const auto refuse = [&](const std::string& what) { return io::FileError(file.string() + ": " + what); };
  std::string_view rest = content;
  std::string_view first = take_line(rest);
  if (!first.starts_with(magic)) throw refuse("not a model file of rieszflow attention");
  first.remove_prefix(magic.size());
  if (first != std::to_string(version))
    throw refuse(fmt::format("a model file of version {}, this program reads version {}", first, version));
  const std::string_view seal = take_line(rest);
  const std::string expected = fmt::format("{} {}", fingerprint(rest), rest.size());
  if (seal != expected)
    throw refuse(seal.ends_with(fmt::format(" {}", rest.size()))
                     ? "damaged: its content has another fingerprint"
                     : "damaged: it is not as long as it says");
  try {
    const Json header = Json::parse(take_line(rest));
    TextModel model;
    header.at("description").get_to(model.description);
    header.at("temperature").get_to(model.temperature);
    header.at("classes").get_to(model.class_names);
    model.vocabulary =
        Vocabulary(header.at("tokens").get<std::vector<std::string>>(), header.at("words").get<std::size_t>(),
                   header.at("bigrams").get<std::vector<Vocabulary::Bigram>>());
    model.weights.shape = shape_of(header.at("shape"));
    if (model.weights.shape.vocabulary != ids_of(model) ||
        model.weights.shape.bigrams == model.vocabulary.bigrams().empty() ||
        model.weights.shape.classes != model.class_names.size())
      throw refuse("damaged: its tokens or classes do not fit its weights");
    for (const attention::WeightArray& array : attention::weight_arrays(model.weights)) {
      const std::size_t bytes = size_of(array) * sizeof(float);
      if (bytes > rest.size()) throw refuse("damaged: weights are missing");
      array.values->resize(size_of(array));
      std::memcpy(array.values->data(), rest.data(), bytes);
      rest.remove_prefix(bytes);
    }
    if (!rest.empty()) throw refuse("damaged: more weights than its shape has");
    return model;
  } catch (const io::FileError&) {
    throw;
  } catch (const std::exception& error) {
    throw refuse(fmt::format("damaged: its header cannot be read ({})", error.what()));
  }
}

}  // namespace rieszflow::text
