#include "config/document.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace rieszflow::config {
namespace {

// A small schema with every kind of key and section.
Schema schema() {
  const Number positive = Number::positive();
  return {
      {.path = "",
       .occurrence = Occurrence::Required,
       .meaning = "",
       .keys = {{"name", Text{.is_name = true}, Presence::Optional, std::string("a"), "", "label"}}},
      {.path = "time",
       .occurrence = Occurrence::Required,
       .meaning = "when",
       .keys = {{"end", positive, Presence::Required, 2.0, "time", "last"},
                {"beta", Number{.lower = 0.0, .lower_included = false, .may_be_infinite = true},
                 Presence::Defaulted, 1.0, "", "cold"}}},
      {.path = "particles",
       .occurrence = Occurrence::Optional,
       .meaning = "how many",
       .keys = {{"count", Integer{.lower = 1, .upper = 1000}, Presence::Required, std::int64_t{10}, "", "N"},
                {"scheme", Choice{{{"reflected", "mirror"}, {"mala", "test"}}}, Presence::Defaulted,
                 std::string("reflected"), "", "how"},
                {"fast", Boolean{}, Presence::Defaulted, false, "", "speed"},
                {"cells", List{Integer{.lower = 1}, 1, 3}, Presence::Defaulted, std::vector<std::int64_t>{4},
                 "", "grid"},
                {"labels", List{Text{}}, Presence::Optional, std::vector<std::string>{"x"}, "", "words"}}},
      {.path = "model",
       .occurrence = Occurrence::Defaulted,
       .meaning = "what",
       .keys = {{"shift", Number::any(), Presence::Defaulted, 0.25, "", "offset"}}},
      {.path = "model.term",
       .occurrence = Occurrence::Repeated,
       .meaning = "terms",
       .variants =
           {{"linear", "a line", {{"slope", Number::any(), Presence::Required, 1.0, "", "steepness"}}},
            {"bump",
             "a hill",
             {{"center", List{Number::any()}, Presence::Required, std::vector<double>{0.0}, "", "top"},
              {"width", positive, Presence::Defaulted, 0.5, "", "size"}}}}},
  };
}

std::unique_ptr<Document> parsed(const std::string& text, std::vector<std::string> overrides = {}) {
  return Document::parse(text, "c.toml", schema(), overrides);
}

// All problems as lines; empty when there are none.
std::string problems(const std::string& text, std::vector<std::string> overrides = {}) {
  try {
    parsed(text, std::move(overrides))->throw_problems();
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

std::string resolved(const std::string& text, std::vector<std::string> overrides = {}) {
  const auto document = parsed(text, std::move(overrides));
  document->throw_problems();
  return document->resolved();
}

TEST(Document, ReadsEveryKindOfKeyAndFillsDefaultsIn) {
  const auto document = parsed(
      "name = 'ρ'\n[time]\nend = 3\n[particles]\ncount = 7\nlabels = ['a', 'b\"c']\n"
      "[[model.term]]\ntype = 'bump'\ncenter = [1, 2.5]\n[[model.term]]\ntype = 'linear'\nslope = -2\n");
  document->throw_problems();
  EXPECT_EQ(document->table("")->text("name"), "ρ");
  EXPECT_EQ(document->table("time")->number("end"), 3.0);
  EXPECT_EQ(document->table("time")->number("beta"), 1.0);
  const Table& particles = *document->table("particles");
  EXPECT_EQ(particles.integer("count"), 7);
  EXPECT_EQ(particles.text("scheme"), "reflected");
  EXPECT_FALSE(particles.boolean("fast"));
  EXPECT_EQ(particles.integers("cells"), std::vector<std::int64_t>{4});
  EXPECT_EQ(particles.texts("labels"), (std::vector<std::string>{"a", "b\"c"}));
  EXPECT_EQ(document->table("model")->number("shift"), 0.25);
  const auto terms = document->tables("model.term");
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0]->type(), "bump");
  EXPECT_EQ(terms[0]->numbers("center"), (std::vector<double>{1.0, 2.5}));
  EXPECT_EQ(terms[0]->number("width"), 0.5);
  EXPECT_EQ(terms[1]->number("slope"), -2.0);
}

TEST(Document, AnAbsentOptionalTableIsNull) {
  EXPECT_EQ(parsed("[time]\nend = 1\n")->table("particles"), nullptr);
}

TEST(Document, ReportsAllMistakesOfAFileAtOnceWithTheirLines) {
  EXPECT_EQ(
      problems("[time]\n"
               "end = -1\n"
               "count = 3\n"
               "[particles]\n"
               "cuont = 5\n"
               "scheme = \"reflect\"\n"
               "cells = [4, 0]\n"
               "cells = [5]\n"
               "[model.tern]\n"
               "type = \"linear\"\n"),
      "c.toml:2: time.end: is -1, must be a finite number > 0\n"
      "c.toml:3: time.count: unknown key, this key belongs to [particles]; allowed: end, beta\n"
      "c.toml:5: particles.cuont: unknown key, did you mean \"count\"? Allowed: count, scheme, fast, cells, "
      "labels\n"
      "c.toml:6: particles.scheme: is the text \"reflect\", did you mean \"reflected\"? Must be "
      "\"reflected\" | "
      "\"mala\"\n"
      "c.toml:7: particles.cells: entry 2 of the list is 0, must be a list of 1 to 3 integers >= 1\n"
      "c.toml:8: particles.cells: given twice, once is allowed, must be a list of 1 to 3 integers >= 1\n"
      "c.toml:9: model.tern: unknown key, did you mean \"term\"? Allowed: shift, term\n"
      "c.toml:9: model.tern: is a table, must be one or more tables [[model.term]]\n"
      "c.toml:9: model.tern[0].slope: is missing, must be a finite number (steepness)");
}

TEST(Document, NamesMissingTablesKeysAndTypes) {
  EXPECT_EQ(problems("name = 'a'\n[[model.term]]\n"),
            "c.toml:1: time: the table [time] is missing (when)\n"
            "c.toml:2: model.term[0].type: is missing, must be \"linear\" | \"bump\"");
  EXPECT_EQ(problems("[time]\n"), "c.toml:1: time.end: is missing, must be a finite number > 0 (last)");
}

TEST(Document, SaysToWhichTypeAKeyBelongs) {
  EXPECT_EQ(
      problems("[time]\nend = 1\n[[model.term]]\ntype = 'linear'\nslope = 1\nwidth = 2\n"),
      "c.toml:6: model.term[0].width: unknown key, this key belongs to type = \"bump\"; allowed for type = "
      "\"linear\": type, slope");
}

TEST(Document, SaysHowAMisplacedTableIsWritten) {
  EXPECT_EQ(problems("[time]\nend = 1\n[term]\nslope = 1\n"),
            "c.toml:3: term: unknown key, this table is written [[model.term]]; allowed: name, time, "
            "particles, model");
}

struct WrongValue {
  const char* line;     ///< of table [particles] or [time]
  const char* problem;  ///< what the message must hold
};

TEST(Document, RefusesWrongTypesAndRanges) {
  const WrongValue cases[] = {
      {"[time]\nend = nan", "c.toml:2: time.end: is nan, must be a finite number > 0"},
      {"[time]\nend = inf", "is inf, must be a finite number > 0"},
      {"[time]\nend = 0", "is 0, must be a finite number > 0"},
      {"[time]\nend = 0.0", "is 0.0, must be"},
      {"[time]\nend = true", "is true, must be"},
      {"[time]\nend = '1'", "is the text \"1\", must be"},
      {"[time]\nend = 1979-05-27", "is a date or a time, must be"},
      {"[time]\nend = [1.0]", "is a list, must be"},
      {"[time]\nend = {a = 1}", "is a table, must be"},
      {"[time]\nend = 1e999", "must be a finite number > 0"},
      {"[time]\nend = 1\nbeta = nan", "time.beta: is nan, must be a number > 0 or inf"},
      {"[time]\nend = 1\nbeta = -inf", "time.beta: is -inf, must be a number > 0 or inf"},
      {"[time]\nend = 1\n[particles]\ncount = 1e3", "is 1000.0, which is no integer in TOML: write 1000"},
      {"[time]\nend = 1\n[particles]\ncount = 1.5", "is 1.5, must be an integer from 1 to 1000"},
      {"[time]\nend = 1\n[particles]\ncount = 1001", "is 1001, must be an integer from 1 to 1000"},
      {"[time]\nend = 1\n[particles]\ncount = 99999999999999999999", "particles.count: is no valid TOML"},
      {"[time]\nend = 1\n[particles]\ncount = 1OO", "c.toml:4: particles.count: is no valid TOML"},
      {"[time]\nend = 1\n[particles]\ncount = 1\nfast = 1", "is 1, must be true or false"},
      {"[time]\nend = 1\n[particles]\ncount = 1\ncells = 4",
       "is 4, must be a list of 1 to 3 integers >= 1, for instance [4]"},
      {"[time]\nend = 1\n[particles]\ncount = 1\ncells = []", "is an empty list, must be"},
      {"[time]\nend = 1\n[particles]\ncount = 1\ncells = [1,2,3,4]", "has 4 entries, must be"},
      {"[time]\nend = 1\n[particles]\ncount = 1\nlabels = ['']",
       "entry 1 of the list is the text \"\", must be"},
      {"name = ''\n[time]\nend = 1", "name: is the text \"\", must be a non-empty text in quotes"},
      {"time = 3", "time: is 3, must be a table [time]"},
      {"[time]\nend = 1\n[model]\nterm = [1, 2]", "is a list, must be one or more tables [[model.term]]"},
  };
  for (const WrongValue& wrong : cases) {
    const std::string text = problems(wrong.line);
    EXPECT_NE(text.find(wrong.problem), std::string::npos) << wrong.line << "\ngave: " << text;
    EXPECT_EQ(text.find('\n'), std::string::npos)
        << "one mistake, one problem: " << wrong.line << "\ngave: " << text;
  }
}

TEST(Document, InfinityIsAValueWhereItIsAllowed) {
  EXPECT_TRUE(std::isinf(parsed("[time]\nend = 1\nbeta = inf\n")->table("time")->number("beta")));
}

TEST(Document, SyntaxErrorsNameTheLineAndDoNotHideOtherMistakes) {
  const std::string text = problems("[time]\nend = = 3\nbeta = -1\n[particles\n");
  EXPECT_NE(text.find("c.toml:2: time.end: is no valid TOML"), std::string::npos) << text;
  EXPECT_NE(text.find("c.toml:4: "), std::string::npos) << text;
  EXPECT_EQ(text.find("missing"), std::string::npos)
      << "a line that cannot be read is not missing as well: " << text;
  const std::string both = problems("[time]\nend = = 3\nbeta = -1\n");
  EXPECT_NE(both.find("c.toml:3: time.beta: is -1"), std::string::npos) << both;
}

TEST(Document, EveryTruncationOfAConfigIsReadOrRefusedWithALine) {
  const std::string whole = sample_config(schema());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string text = problems(whole.substr(0, length));
    EXPECT_TRUE(text.empty() || text.starts_with("c.toml:")) << length << ": " << text;
  }
}

TEST(Document, KeysThatBeginAsNoKeyDoesAreRefusedWithALine) {
  for (const char* text : {"[", "[ ", "[,]", "[=", "[.a]", "[a.]", "[a.,]", "[[", "é = 1", "a é", "[[,]]",
                           "=", "= 1", "a.=1", "a.", ",", "[\n"})
    EXPECT_TRUE(problems(text).starts_with("c.toml:")) << text;
}

TEST(Document, AKeyOfMegabytesIsOneShortProblem) {
  const std::string key(std::size_t{2} << 20, 'k');
  for (const std::string& line : {key + " = 1\n", key + " = = 1\n", "[" + key + "]\n", "[" + key + "\n"}) {
    const std::string text = problems("[time]\nend = 1\n" + line);
    EXPECT_TRUE(text.starts_with("c.toml:3: ")) << text.substr(0, 300);
    EXPECT_LT(text.size(), 1000u);
  }
  const std::string typed = problems("[time]\nend = 1\n[[model.term]]\n" + key + " = 1\n");
  EXPECT_TRUE(typed.starts_with("c.toml:3: model.term[0].type: is missing")) << typed.substr(0, 300);
}

TEST(Document, NamesOfFilesStayInTheirFolder) {
  EXPECT_EQ(problems("name = \"a b.c\"\n[time]\nend = 1\n"), "");
  for (const char* name : {"../x", "/x", "a/b", "..", ".hidden"}) {
    const std::string text = problems("name = \"" + std::string(name) + "\"\n[time]\nend = 1\n");
    EXPECT_EQ(text, "c.toml:1: name: is the text \"" + std::string(name) +
                        "\", must be a non-empty text in quotes, without \"/\" and with no \".\" in front");
  }
}

TEST(Document, ATableOfAnotherSchemaIsNamedAsSuch) {
  const Document::Foreign foreign{{"study", "this table is one of a study"}};
  const auto document =
      Document::parse("[time]\nend = 1\n[study]\n[model]\nstudy = 1\n", "c.toml", schema(), {}, foreign);
  try {
    document->throw_problems();
    FAIL() << "unknown keys are problems";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("c.toml:3: study: unknown key, this table is one of a study; allowed: name"))
        << text;
    EXPECT_NE(text.find("c.toml:5: model.study: unknown key; allowed"), std::string::npos) << text;
  }
}

TEST(Document, FilesThatAreNoConfigAreRefusedWithASentence) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "rieszflow no config";
  std::filesystem::create_directories(folder);
  const auto refusal_of = [&](const std::filesystem::path& file) -> std::string {
    try {
      Document::read(file, schema(), {})->throw_problems();
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  const auto written = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return folder / name;
  };
  EXPECT_NE(refusal_of(folder / "none.toml").find("none.toml: there is no such file"), std::string::npos);
  EXPECT_NE(refusal_of(folder).find("is a directory"), std::string::npos);
  EXPECT_NE(refusal_of(written("empty.toml", "")).find("empty.toml:1: the file is empty"), std::string::npos);
  EXPECT_NE(refusal_of(written("blank.toml", " \n\n\t\n")).find("the file is empty"), std::string::npos);
  EXPECT_NE(refusal_of(written("binary.toml", std::string("[time]\nend\0 = 1", 14)))
                .find("binary.toml:2: is no text"),
            std::string::npos);
  EXPECT_NE(refusal_of(written("latin1.toml", "[time]\nend = 1 # \xfc\n")).find("latin1.toml:2: is no text"),
            std::string::npos);
  // What need not end is not waited for; a pipe that somebody writes is a file.
  ASSERT_EQ(mkfifo((folder / "pipe.toml").c_str(), 0600), 0);
  for (const std::filesystem::path& file : {folder / "pipe.toml", std::filesystem::path("/dev/zero")})
    EXPECT_NE(refusal_of(file).find("is no regular file"), std::string::npos) << file;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string config = "[time]\nend = 1\n";
  ASSERT_EQ(write(ends[1], config.data(), config.size()), static_cast<ssize_t>(config.size()));
  close(ends[1]);
  EXPECT_EQ(refusal_of("/dev/fd/" + std::to_string(ends[0])), "");
  close(ends[0]);
  EXPECT_EQ(refusal_of(written("ümlaut ρ.toml", "\xef\xbb\xbf[time]\r\nend = 1\r\n")), "");
  std::filesystem::remove_all(folder);
}

TEST(Overrides, ReplaceAddAndReachIntoRepeatedTables) {
  const std::string text = "[time]\nend = 1\n[[model.term]]\ntype = 'linear'\nslope = 1\n";
  const auto document =
      parsed(text, {"time.end=2.5", "model.term.0.slope = -3", "particles.count=4", "particles.scheme=mala",
                    "particles.cells=[5, 6]", "time.beta=inf", "name=a b"});
  document->throw_problems();
  EXPECT_EQ(document->table("time")->number("end"), 2.5);
  EXPECT_TRUE(std::isinf(document->table("time")->number("beta")));
  EXPECT_EQ(document->tables("model.term")[0]->number("slope"), -3.0);
  EXPECT_EQ(document->table("particles")->integer("count"), 4);
  EXPECT_EQ(document->table("particles")->text("scheme"), "mala");
  EXPECT_EQ(document->table("particles")->integers("cells"), (std::vector<std::int64_t>{5, 6}));
  EXPECT_EQ(document->table("")->text("name"), "a b");
  EXPECT_EQ(parsed(text, {"model.term[0].slope=7"})->tables("model.term")[0]->number("slope"), 7.0);
  EXPECT_EQ(parsed(text, {"time.end=2", "time.end=3"})->table("time")->number("end"), 3.0);
}

TEST(Overrides, AreNamedInTheirProblems) {
  const std::string text = "[time]\nend = 1\n[[model.term]]\ntype = 'linear'\nslope = 1\n";
  EXPECT_EQ(problems(text, {"time.end=-2"}), "--set: time.end: is -2, must be a finite number > 0");
  EXPECT_EQ(problems(text, {"time.edn=2"}),
            "--set: time.edn: unknown key, did you mean \"end\"? Allowed: end, beta");
  EXPECT_EQ(problems(text, {"model.term.1.slope=2"}),
            "--set: model.term.1.slope: \"1\" is no index of 1 entries, the index counts from 0");
  EXPECT_EQ(problems(text, {"time.end.x=2"}),
            "--set: time.end.x: leads through a value, must lead through tables");
  for (const char* malformed : {"time.end", "=2", "time.end="}) {
    EXPECT_NE(problems(text, {malformed}).find("is no override, must be key.path=value"), std::string::npos)
        << malformed;
  }
  for (const char* path : {"time..end", ".time.end", "time.end.", "model.term[0.slope", "model.term0].slope",
                           "model.term[0]slope", "model.term[].slope", "model.term[one].slope",
                           "model.term[[0]].slope", "[0].slope", "model.term[0].slope]"}) {
    EXPECT_EQ(problems(text, {std::string(path) + "=2"}),
              "--set: " + std::string(path) +
                  ": is no path, must be names and indices as in model.potential[0].stiffness or "
                  "model.potential.0.stiffness");
  }
  EXPECT_EQ(problems("[time]\nend = -1\n", {"time.end=2"}), "") << "an override mends the file's value";
}

TEST(Resolved, IsAConfigThatResolvesToItself) {
  const std::string text =
      "name = \"q\\\"ρ\\\\\\n\"\n[time]\nend = 3\nbeta = inf\n[particles]\ncount = 7\nlabels = ['a']\n"
      "[[model.term]]\ntype = 'bump'\ncenter = [1, 0.1]\n[[model.term]]\ntype = 'linear'\nslope = -2\n";
  const std::string once = resolved(text);
  EXPECT_EQ(resolved(once), once);
  EXPECT_NE(once.find("width = 0.5"), std::string::npos) << "defaults are filled in";
  EXPECT_NE(once.find("shift = 0.25"), std::string::npos) << "tables that were left out, too";
}

TEST(Resolved, NumbersReadBackBitForBit) {
  for (const double number :
       {0.1 + 0.2, 1e-308, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 1e22, -0.0, 123456789.0}) {
    const std::string text = resolved("[time]\nend = 1\n[[model.term]]\ntype = 'linear'\nslope = 0\n",
                                      {"model.term.0.slope=" + toml_text(number)});
    const double back = parsed(text)->tables("model.term")[0]->number("slope");
    EXPECT_EQ(std::memcmp(&back, &number, sizeof number), 0) << text;
  }
}

TEST(Resolved, IsTheSameInALocaleWithDecimalCommas) {
  const std::string before = resolved("[time]\nend = 1.5e-3\n");
  const char* name = std::setlocale(LC_ALL, "de_DE.UTF-8");
  if (name == nullptr) GTEST_SKIP() << "the locale de_DE.UTF-8 is not installed";
  const std::string after = resolved("[time]\nend = 1.5e-3\n");
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(before, after);
  EXPECT_NE(after.find("end = 0.0015"), std::string::npos);
}

TEST(SampleConfig, IsAValidConfigForEveryVariant) {
  EXPECT_EQ(problems(sample_config(schema())), "");
  const std::string sample = sample_config(schema(), {{"model.term", "bump"}});
  EXPECT_EQ(problems(sample), "");
  EXPECT_EQ(parsed(sample)->tables("model.term")[0]->type(), "bump");
}

TEST(Listing, NamesEveryVariantAndChoice) {
  const std::string text = listing(schema());
  for (const char* name : {"linear", "bump", "a hill", "reflected", "mala", "mirror"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace rieszflow::config
