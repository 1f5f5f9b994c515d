// Does text of a file's name, of a file or of the command line ever command a terminal, or leave a result that does?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using testing::HasSubstr;

/// A title, a colour, the same with one character for ESC [, a direction, DEL, a return. No '/', ',' or ':'.
constexpr const char* kHostile =
    "n\x1b]0;t\a\x1b[31m\xc2\x9b"
    "31m\u202e\u2066\x7f\r";

/// What is wrong with a text that a terminal, a browser or a spreadsheet shows; "" for nothing. The check of UTF-8 is
/// nlohmann-json's.
std::string fault_of(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) return "byte " + std::to_string(byte);
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return "a C1 control";
  }
  for (const char* direction : {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b", "\u202c",
                                "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"})
    if (text.find(direction) != std::string::npos) return "a change of direction";
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return "no UTF-8";
  }
  return "";
}

/// Inputs whose names and texts are hostile. A name of a file may also be no UTF-8.
class Hostile : public ScratchDirectory {
 public:
  const std::string model = std::string(kHostile) + "\xff.json";
  const std::string cluster = "cluster\x1b[2J.json";
  const std::string trace = std::string("trace") + kHostile + ".sst";
  const std::string recording = std::string("kineto") + kHostile + ".json";
  const std::string snapshot = std::string("snapshot") + kHostile + ".pickle";
  const std::string deepspeed = std::string("ds") + kHostile + ".json";
  const std::string list = std::string("list") + kHostile + ".json";

  Hostile() {
    write(model,
          R"({"model_type": "gpt2", "vocab_size": 256, "n_positions": 32, "n_embd": 32, "n_layer": 1, "n_head": 2})");
    nlohmann::json machine =
        nlohmann::json::parse(read_file(std::string(PROJECT) + "/examples/clusters/cpu-local.json"));
    machine["name"] = kHostile;
    write(cluster, machine.dump());
    write(deepspeed, nlohmann::json{{"zero_optimization", {{"stage", 2}, {kHostile, 1}}}, {kHostile, kHostile}}.dump());
    write(list, nlohmann::json::array({{{"name", kHostile}, {"shape", {4}}, {"numel", 4}}}).dump());
    const nlohmann::json event{{"ph", "X"}, {"name", kHostile}, {"cat", kHostile}, {"ts", 1},
                               {"dur", 2},  {"pid", 1},         {"tid", kHostile}};
    write(recording, nlohmann::json{{"traceEvents", {event}}, {kHostile, kHostile}}.dump());
    EXPECT_EQ(call({"convert", recording, trace}).exit_code, 0);
    EXPECT_EQ(call({"simulate", "--model", model, "--trace", "own.sst"}).exit_code, 0);
    EXPECT_EQ(call({"convert", "own.sst", snapshot}).exit_code, 0);
  }
  [[nodiscard]] Outcome call(const Words& arguments) const { return shardscope(arguments, {.directory = path()}); }

  /// Each with an answer in at least one form.
  [[nodiscard]] std::vector<Words> answering() const {
    const Words run{"--model", model, "--cluster", cluster, "--sequence", "32"};
    const auto with = [&](Words words, const Words& more = {}) {
      words.insert(words.end(), run.begin(), run.end());
      words.insert(words.end(), more.begin(), more.end());
      return words;
    };
    return {with({"simulate"}),
            with({"simulate"}, {"--steps", "2"}),
            with({"simulate"}, {"--ds-config", deepspeed}),
            with({"simulate"}, {"--like", "pytorch"}),
            with({"sweep"}, {"--stage", "0,3", "--world-size", "2"}),
            {"search", "--model", model, "--world-size", "2"},
            {"search", "--parameters", list, "--world-size", "2"},
            {"plan", "--model", model, "--sequence", "32"},
            {"compare", trace, trace, "--force"},
            {"compare", "own.sst", "own.sst"},
            {"inspect", model},
            {"inspect", trace},
            {"inspect", recording},
            {"inspect", snapshot}};
  }
  /// Refused, with the hostile text in the message.
  [[nodiscard]] std::vector<Words> refused() const {
    return {{"simulate", "--model", kHostile},
            {"simulate", "--cluster", kHostile},
            {"simulate", "--model", "gpt2-nano", kHostile},
            {"simulate", std::string("--") + kHostile},
            {"simulate", "--stage", kHostile},
            {"simulate", "--config", kHostile},
            {kHostile},
            {"help", kHostile},
            {"search", "--parameters", kHostile},
            {"sweep", "--model", kHostile, "--stage", "0,1"},
            {"compare", kHostile, trace},
            {"convert", trace, "a", "--to", kHostile},
            {"validate", kHostile},
            {"inspect", deepspeed},
            {"validate", deepspeed}};
  }
};

TEST(HostileText, NeverReachesATerminal) {
  const Hostile in;
  for (const Words& words : in.answering()) {
    int answered = 0;
    for (const char* format : {"", "table", "json", "csv", "markdown"}) {
      Words all = words;
      if (*format != '\0') all.insert(all.end(), {"--format", format});
      const Outcome outcome = in.call(all);
      answered += outcome.exit_code == 0 ? 1 : 0;
      EXPECT_EQ(fault_of(outcome.out), "") << testing::PrintToString(all) << outcome.out;
      EXPECT_EQ(fault_of(outcome.err), "") << testing::PrintToString(all) << outcome.err;
    }
    EXPECT_GE(answered, 1) << testing::PrintToString(words) << in.call(words).err;
  }
  for (const Words& words : in.refused()) {
    const Outcome outcome = in.call(words);
    EXPECT_NE(outcome.exit_code, 0) << testing::PrintToString(words);
    EXPECT_EQ(fault_of(outcome.out), "") << testing::PrintToString(words);
    EXPECT_EQ(fault_of(outcome.err), "") << testing::PrintToString(words) << outcome.err;
  }
}

TEST(HostileText, IsShownWithWhatItIs) {
  const Hostile in;
  const Outcome outcome = in.call({"simulate", "--model", in.model, "--cluster", in.cluster, "--sequence", "32"});
  EXPECT_THAT(outcome.out, HasSubstr("n\\x1b]0;t\\x07\\x1b[31m\\u{9b}31m\\u{202e}\\u{2066}\\x7f\\x0d"));
}

TEST(HostileText, StaysExactInJson) {
  const Hostile in;
  const auto j = json_of(
      in.call({"simulate", "--model", in.model, "--cluster", in.cluster, "--sequence", "32", "--format", "json"}));
  EXPECT_EQ(j["assumed"]["cluster"]["value"], kHostile);
}

TEST(HostileText, IsInNoFileThatIsMadeToBeSeen) {
  const Hostile in;
  std::vector<std::pair<Words, std::string>> all{{{"convert", in.trace, "a.csv"}, "a.csv"},
                                                 {{"convert", in.snapshot, "b.svg"}, "b.svg"},
                                                 {{"sweep", "--model", in.model, "--cluster", in.cluster, "--sequence",
                                                   "32", "--stage", "0,3", "--world-size", "2", "--picture", "c.svg"},
                                                  "c.svg"}};
#ifdef WITH_VIEWER
  for (const std::string& from : {in.trace, in.snapshot})
    for (const char* form : {"d.html", "d.md"}) all.push_back({{"report", from, "-o", form}, form});
  all.push_back({{"report", in.trace, in.trace, "-o", "e.html"}, "e.html"});
#endif
  for (const auto& [words, file] : all) {
    const Outcome outcome = in.call(words);
    EXPECT_EQ(outcome.exit_code, 0) << testing::PrintToString(words) << outcome.err;
    EXPECT_EQ(fault_of(outcome.out + outcome.err), "") << testing::PrintToString(words);
    const std::string text = read_file(in.path() / file);
    EXPECT_NE(text, "") << file;
    EXPECT_EQ(fault_of(text), "") << file;
  }
}

#ifdef WITH_VIEWER
TEST(HostileText, AReportMayDoNothingButShowItself) {
  const Hostile in;
  ASSERT_EQ(in.call({"report", in.trace, "-o", "a.html"}).exit_code, 0);
  const std::string page = read_file(in.path() / "a.html");
  const auto between = [&page](const std::string& begin, const std::string& end) {
    const std::size_t at = page.find(begin) + begin.size();
    return page.substr(at, page.find(end, at) - at);
  };
  ASSERT_THAT(page, HasSubstr("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "));
  // The hashes of the style and of the one script by another program: base64 of SHA-256.
  for (const std::string part : {"style", "script"}) {
    in.write("part", between("<" + part + ">", "</" + part + ">"));
    const Outcome hash =
        run({"/bin/sh", "-c", R"sh(/usr/bin/printf "$(sha256sum part | cut -c1-64 | sed 's/../\\x&/g')" | base64)sh"},
            {.directory = in.path()});
    ASSERT_EQ(hash.exit_code, 0);
    EXPECT_EQ(between(part + "-src 'sha256-", "'"), hash.out.substr(0, hash.out.find('\n'))) << part;
  }
  EXPECT_EQ(page.find("<script"), page.rfind("<script"));
  for (const char* refused : {"<script ", " style=\"", " onload", "src=\"http", "href="})
    EXPECT_EQ(page.find(refused), std::string::npos) << refused;
}
#endif

}  // namespace
}  // namespace shard::test
