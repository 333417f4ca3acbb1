#include "experiments/attention/text_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/expects.hpp"
#include "core/fingerprint.hpp"
#include "io/files.hpp"

namespace rieszflow::text {
namespace {

namespace fs = std::filesystem;

/// Whether the bytes are UTF-8 (RFC 3629).
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const unsigned lead = byte(i);
    const std::size_t more = lead < 0x80                    ? 0
                             : lead >= 0xc2 && lead <= 0xdf ? 1
                             : lead >= 0xe0 && lead <= 0xef ? 2
                             : lead >= 0xf0 && lead <= 0xf4 ? 3
                                                            : 4;
    if (more == 4) return false;
    for (std::size_t k = 1; k <= more; ++k)
      if ((byte(i + k) & 0xc0U) != 0x80U) return false;
    const unsigned next = byte(i + 1);
    if ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) || (lead == 0xf0 && next < 0x90) ||
        (lead == 0xf4 && next > 0x8f))
      return false;
    i += more + 1;
  }
  return true;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto tab = line.find('\t');
    out.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return out;
    line.remove_prefix(tab + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Which field holds what.
struct Columns {
  std::size_t count = 0;
  std::optional<std::size_t> first, second, label;
};

Columns columns_of(std::string_view header) {
  Columns columns;
  for (const std::string_view name : fields_of(header)) {
    if (name == "sentence" || name == "question1") columns.first = columns.count;
    if (name == "question2") columns.second = columns.count;
    if (name == "label" || name == "is_duplicate") columns.label = columns.count;
    ++columns.count;
  }
  return columns;
}

bool holds_text(const Columns& columns) { return columns.first.has_value(); }

/// Collects problems and counts those beyond the first.
class Problems {
 public:
  explicit Problems(const fs::path& file) : file_(file.string()) {}
  void add(std::size_t line, const std::string& what) {
    if (++count_ <= most_problems) list_.push_back(fmt::format("{}:{}: {}", file_, line, what));
  }
  std::vector<std::string> take() {
    if (count_ > most_problems)
      list_.push_back(fmt::format("{}: {} more broken rows", file_, count_ - most_problems));
    return std::move(list_);
  }

 private:
  std::string file_;
  std::size_t count_ = 0;
  std::vector<std::string> list_;
};

/// The rows below a header; `wants_labels`: a label column, where there is one, is read.
void read_rows(const std::vector<std::string_view>& lines, const Columns& columns, bool wants_labels,
               TextData& data, Problems& problems) {
  const bool labelled = wants_labels && columns.label;
  for (std::size_t number = 2; number <= lines.size(); ++number) {
    const std::string_view line = lines[number - 1];
    const auto fields = fields_of(line);
    if (!is_utf8(line)) {
      problems.add(number, "bytes that are not UTF-8");
    } else if (fields.size() != columns.count) {
      problems.add(number, fmt::format("{} fields, the header has {}", fields.size(), columns.count));
    } else if (trimmed(fields[*columns.first]).empty() ||
               (columns.second && trimmed(fields[*columns.second]).empty())) {
      problems.add(number, "an empty text");
    } else if (labelled && fields[*columns.label] != "0" && fields[*columns.label] != "1") {
      problems.add(number, fmt::format("label \"{}\", must be 0 or 1", fields[*columns.label]));
    } else {
      data.first.emplace_back(trimmed(fields[*columns.first]));
      if (columns.second) data.second.emplace_back(trimmed(fields[*columns.second]));
      if (labelled) data.labels.push_back(fields[*columns.label] == "1" ? 1 : 0);
    }
  }
}

}  // namespace

TextReading read_text(const fs::path& file) {
  TextReading out;
  out.data.name = file.stem().string();
  const std::string text = io::read_text(file);
  const auto lines = lines_of(text);
  Problems problems(file);
  const Columns columns = lines.empty() ? Columns{} : columns_of(lines.front());
  if (!holds_text(columns)) {
    problems.add(1,
                 "no header with the columns sentence and label, or question1, question2 and label or "
                 "is_duplicate, separated by tabs");
  } else {
    out.data.pairs = columns.second.has_value();
    read_rows(lines, columns, true, out.data, problems);
    if (lines.size() == 1) problems.add(1, "a header without rows");
  }
  out.problems = problems.take();
  return out;
}

TextReading read_sentences(const fs::path& file, bool pairs) {
  TextReading out;
  out.data.name = file.stem().string();
  out.data.pairs = pairs;
  const std::string text = io::read_text(file);
  const auto lines = lines_of(text);
  Problems problems(file);
  const Columns columns = lines.empty() ? Columns{} : columns_of(lines.front());
  if (lines.empty()) {
    problems.add(1, "no sentences");
  } else if (holds_text(columns)) {
    if (columns.second.has_value() != pairs) {
      problems.add(1, pairs ? "the model is for pairs: columns question1 and question2"
                            : "the model is for single sentences: a column sentence");
    } else {
      read_rows(lines, columns, false, out.data, problems);
    }
  } else {
    for (std::size_t number = 1; number <= lines.size(); ++number) {
      const std::string_view line = lines[number - 1];
      const auto fields = fields_of(line);
      if (!is_utf8(line)) {
        problems.add(number, "bytes that are not UTF-8");
      } else if (pairs && fields.size() != 2) {
        problems.add(number, "the model is for pairs: two sentences with one tab between them");
      } else if (trimmed(fields.front()).empty() || (pairs && trimmed(fields.back()).empty())) {
        problems.add(number, "an empty text");
      } else {
        out.data.first.emplace_back(trimmed(pairs ? fields.front() : line));
        if (pairs) out.data.second.emplace_back(trimmed(fields.back()));
      }
    }
  }
  out.problems = problems.take();
  return out;
}

Splits read_splits(const fs::path& folder) {
  Splits out;
  const auto take = [&](const char* name, TextData& into) {
    TextReading reading = read_text(folder / name);
    out.problems.insert(out.problems.end(), reading.problems.begin(), reading.problems.end());
    into = std::move(reading.data);
  };
  take("train.tsv", out.train);
  take("dev.tsv", out.dev);
  if (fs::exists(folder / "test.tsv")) take("test.tsv", out.test);
  for (const TextData* part : {&out.train, &out.dev})
    if (part->labels.empty() && part->count() > 0)
      out.problems.push_back(fmt::format("{}: no column label", (folder / (part->name + ".tsv")).string()));
  if (out.test.labels.empty()) {
    out.test = std::move(out.dev);
    std::vector<std::size_t> kept, held;
    for (std::size_t a = 0; a < out.train.count(); ++a) {
      std::uint64_t hash =
          hash_of_bytes(out.train.first[a] + "\t" + (out.train.pairs ? out.train.second[a] : ""));
      hash ^= hash >> 32;  // the low bits of the hash mix worst
      (hash % 10 == 0 ? held : kept).push_back(a);
    }
    if (!out.train.labels.empty()) {
      out.dev = rows(out.train, held);
      out.train = rows(out.train, kept);
    }
    out.notes.push_back(
        "no labelled test.tsv: dev.tsv is the test set, a tenth of train.tsv the development set");
  }
  if (out.train.pairs != out.dev.pairs || out.train.pairs != out.test.pairs)
    out.problems.push_back(fmt::format("{}: some files hold pairs, others sentences", folder.string()));
  out.train.name = "train", out.dev.name = "dev", out.test.name = "test";
  return out;
}

TextData rows(const TextData& data, const std::vector<std::size_t>& chosen) {
  TextData out{.name = data.name, .pairs = data.pairs};
  for (const std::size_t a : chosen) {
    expects(a < data.count(), "rows of the data");
    out.first.push_back(data.first[a]);
    if (data.pairs) out.second.push_back(data.second[a]);
    if (!data.labels.empty()) out.labels.push_back(data.labels[a]);
  }
  return out;
}

std::vector<std::string> words(std::string_view sentence) {
  const auto is_letter = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte >= 0x80;
  };
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  std::vector<std::string> out;
  for (std::size_t i = 0; i < sentence.size();) {
    if (is_blank(sentence[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    const auto letter_at = [&](std::size_t at) { return at < sentence.size() && is_letter(sentence[at]); };
    if (is_letter(sentence[i]) || (sentence[i] == '\'' && letter_at(i + 1))) {
      ++i;
      while (letter_at(i) || (i < sentence.size() && sentence[i] == '\'' && letter_at(i + 1))) ++i;
    } else {
      while (i < sentence.size() && sentence[i] == sentence[begin]) ++i;
    }
    std::string word(sentence.substr(begin, i - begin));
    for (char& c : word)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    out.push_back(std::move(word));
  }
  return out;
}

}  // namespace rieszflow::text
