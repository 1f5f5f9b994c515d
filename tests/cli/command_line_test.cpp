// Do options reach their variables with the right value and origin, and do mistakes say what, where and how to mend?
#include "sim/cli/command_line.h"
#include "sim/cli/foreign_options.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/cli/output.h"

namespace shard::cli {
namespace {

enum class UnitKind { tensor, module, chunk };

/// A command like the real ones.
struct Sample {
  std::string model;
  int world_size = 1;
  int stage = 0;
  Elems chunk{33554432};
  UnitKind unit = UnitKind::module;
  bool quiet = false;
  bool reproducible = true;
  double rate = 1e-3;
  std::optional<Bytes> capacity;
  std::vector<std::string> tags{"none"};
  std::string trace;
  OutputOptions output;
  Command command{"shardscope", "simulate", "predicts one strategy", "Examples:\n  shardscope simulate --model gpt2\n"};

  Sample() {
    Group model_group = command.group("Model");
    model_group.add("model", &model, "NAME|FILE", "what to train").required();
    Group group = command.group("Sharding");
    group.add("world-size", &world_size, "N", "number of ranks").alias("ranks").least(1);
    group.add("stage", &stage, "0..3", "ZeRO stage").least(0).most(3);
    group.add("chunk-size", &chunk, "ELEMS", "elements of a chunk");
    group.add_choice<UnitKind>("unit", &unit,
                               {{"tensor", UnitKind::tensor, "each parameter by itself"},
                                {"module", UnitKind::module},
                                {"chunk", UnitKind::chunk}},
                               "what is gathered at once");
    group.add_flag("quiet", &quiet, "say less");
    group.add_switch("reproducible", &reproducible, "the same bits everywhere");
    group.add("lr", &rate, "RATE", "learning rate").least(0);
    group.add("device-capacity", &capacity, "BYTES", "limit");
    group.add("tag", &tags, "TAG", "label");
    add_output_options(command, output);
    command.add_positional("TRACE", &trace, "where to write");
  }

  Result<Outcome> parse(std::vector<std::string> arguments) { return command.parse(arguments); }
};

/// A file that is gone after the test.
class File {
 public:
  explicit File(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("shardscope_cli_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(CommandLine, ValuesReachTheirVariables) {
  Sample s;
  const auto outcome = s.parse({"--model", "gpt2", "--ranks=4", "--chunk-size", "64M", "--unit", "chunk", "--quiet",
                                "--no-reproducible", "--lr", "3e-4", "--device-capacity", "40GB", "out.trace"});
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(*outcome, Outcome::run);
  EXPECT_EQ(s.model, "gpt2");
  EXPECT_EQ(s.world_size, 4);
  EXPECT_EQ(s.chunk, Elems{64000000});
  EXPECT_EQ(s.unit, UnitKind::chunk);
  EXPECT_TRUE(s.quiet);
  EXPECT_FALSE(s.reproducible);
  EXPECT_EQ(s.rate, 3e-4);
  EXPECT_EQ(s.capacity, Bytes{40000000000});
  EXPECT_EQ(s.trace, "out.trace");
}

TEST(CommandLine, DefaultsStayAndSayThatTheyAreDefaults) {
  Sample s;
  ASSERT_TRUE(s.parse({"--model", "gpt2"}));
  EXPECT_EQ(s.chunk, Elems{33554432});
  EXPECT_EQ(s.tags, std::vector<std::string>{"none"});
  EXPECT_FALSE(s.command.given("chunk-size"));
  EXPECT_EQ(s.command.describe("chunk-size"), "--chunk-size 32Mi (default)");
  EXPECT_EQ(s.command.describe("model"), "--model gpt2 (command line)");
}

TEST(CommandLine, AVectorTakesEveryOccurrenceInPlaceOfItsDefault) {
  Sample s;
  ASSERT_TRUE(s.parse({"--model", "gpt2", "--tag", "a", "--tag", "b"}));
  EXPECT_EQ(s.tags, (std::vector<std::string>{"a", "b"}));
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string what;
  std::string help;  ///< a part of it
};

TEST(CommandLine, MistakesAreUsageErrorsThatTeach) {
  const std::vector<Mistake> mistakes{
      {{"--modle", "gpt2"}, "unknown option '--modle'", "did you mean '--model'?"},
      {{"--chunk_sizes=3"}, "unknown option '--chunk_sizes'", "did you mean '--chunk-size'?"},
      {{"--zzz"}, "unknown option '--zzz'", "shardscope simulate --help"},
      {{"--mod", "gpt2"}, "unknown option '--mod'", "did you mean '--model'?"},
      {{}, "--model is required: what to train", "--model NAME|FILE"},
      {{"--model"}, "--model needs a value", "--model NAME|FILE"},
      {{"--model", "--stage", "1"}, "--model needs a value", "--model NAME|FILE"},
      {{"--quiet=1", "--model", "m"}, "--quiet takes no value", "--help"},
      {{"--model", "m", "--unit", "chunks"}, "'chunks' is not a value of this option", "did you mean 'chunk'?"},
      {{"--model", "m", "--stage", "4"}, "'4' is out of range", "of at most 3"},
      {{"--model", "m", "--ranks", "0"}, "'0' is out of range", "at least 1"},
      {{"--model", "m", "--ranks", "-2"}, "'-2' is out of range", "at least 1"},
      {{"--model", "m", "--lr", "fast"}, "'fast' is not a number", "3e-4"},
      {{"--model", "m", "--lr", "nan"}, "'nan' is not a number", "3e-4"},
      {{"--model", "m", "--stage", "1", "--stage", "2"}, "--stage is given twice ('1', '2')", "leave one"},
      {{"--model", "m", "a", "b"}, "unexpected argument 'b'", "--help"},
      {{"--model", "m", "--world-size", "99999999999"}, "'99999999999' is out of range", "2147483647"},
  };
  for (const Mistake& mistake : mistakes) {
    Sample s;
    const auto outcome = s.parse(mistake.arguments);
    ASSERT_FALSE(outcome) << mistake.what;
    EXPECT_EQ(outcome.error().code, Errc::usage);
    EXPECT_EQ(outcome.error().what, mistake.what);
    EXPECT_NE(outcome.error().help.find(mistake.help), std::string::npos) << outcome.error().help;
  }
}

TEST(CommandLine, AnEmptyValueIsAUsageErrorOfEveryOption) {
  for (const char* option :
       {"--model", "--ranks", "--chunk-size", "--unit", "--lr", "--device-capacity", "--tag", "--format", "--config"}) {
    Sample s;
    const auto outcome = s.parse({"--model", "m", option, ""});
    ASSERT_FALSE(outcome) << option;
    EXPECT_EQ(outcome.error().code, Errc::usage) << option;
    EXPECT_EQ(outcome.error().what, "the value is empty") << option;
    const std::string name = option == std::string("--ranks") ? "--world-size" : option;
    EXPECT_EQ(outcome.error().where, name);
  }
  Sample s;
  const auto argument = s.parse({"--model", "m", ""});
  ASSERT_FALSE(argument);
  EXPECT_EQ(to_string(argument.error()), "TRACE: the value is empty\n  try: TRACE, or leave TRACE out");
}

TEST(CommandLine, EmptyTextIsAValueWhereTheOptionSaysSo) {
  std::string suffix = "x";
  Command command("shardscope", "simulate", "predicts", "");
  command.group("Names").add("suffix", &suffix, "TEXT", "behind every name").may_be_empty();
  ASSERT_TRUE(command.parse(std::vector<std::string>{"--suffix", ""}));
  EXPECT_EQ(suffix, "");
}

TEST(CommandLine, ListsHaveNoEmptyEntries) {
  for (const char* text : {"a,,b", ",a", "a,", ","}) {
    std::vector<std::string> names;
    Command command("shardscope", "simulate", "predicts", "");
    command.group("Names").add_list("names", &names, "NAME,...", "names");
    const auto outcome = command.parse(std::vector<std::string>{"--names", text});
    ASSERT_FALSE(outcome) << text;
    EXPECT_EQ(outcome.error().what, "'" + std::string(text) + "' has an empty entry");
  }
}

TEST(CommandLine, NoneOfSeveralValuesIsEmpty) {
  Sample s;
  s.command.take_lists([](const std::string&, const std::vector<std::string>&) { return std::size_t{0}; });
  const auto outcome = s.parse({"--model", "gpt2,"});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().where + ": " + outcome.error().what, "--model: the value is empty");
}

TEST(CommandLine, HelpWinsOverMistakesAndShowsWhatMatters) {
  Sample s;
  const auto outcome = s.parse({"--zzz", "--help"});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::help);
  const std::string help = s.command.help(100);
  for (const char* part :
       {"shardscope simulate: predicts one strategy", "Usage: shardscope simulate [TRACE] --model NAME|FILE [options]",
        "--chunk-size ELEMS (=32Mi)", "(also --ranks)", "tensor|module|chunk (=module)", "tensor: each parameter",
        "--no-reproducible", "Examples:\n  shardscope simulate --model gpt2", "--config FILE"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part << "\n" << help;
  }
}

TEST(CommandLine, UsageEndsWithWhatFollowsTheOptions) {
  Command command("shardscope", "dryrun", "runs a program", "");
  command.followed_by("-- PROGRAM [ARGUMENT...]");
  EXPECT_NE(command.help(100).find("\n\nUsage: shardscope dryrun [options] -- PROGRAM [ARGUMENT...]\n"),
            std::string::npos);
}

/// As many options as fill more than a screen, of which two are common.
Command& fill(Command& command, std::vector<std::string>& values) {
  Group group = command.group("Many");
  group.add("first", &values[0], "VALUE", "common").common();
  for (std::size_t i = 1; i < values.size(); ++i)
    group.add("rare-" + std::to_string(i), &values[i], "VALUE", "not common");
  return command;
}

TEST(CommandLine, HelpOfManyOptionsShowsTheCommonOnesAndSaysHowToSeeAll) {
  const auto help_for = [](std::size_t count, const std::vector<std::string>& arguments) {
    std::vector<std::string> values(count);
    Command command("shardscope", "simulate", "predicts", "");
    EXPECT_EQ(*fill(command, values).parse(arguments), Outcome::help);
    return command.help(100);
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const std::string common = help_for(30, {"--help"});
  EXPECT_TRUE(has(common, "--first"));
  EXPECT_TRUE(has(common, "--help"));
  EXPECT_FALSE(has(common, "--rare-7"));
  EXPECT_TRUE(has(common, "These are the common options; 'shardscope simulate --help all' shows 29 more.")) << common;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help", "all"}, {"-h", "all"}, {"--help=all"}, {"--zzz", "--help", "all"}}) {
    const std::string all = help_for(30, arguments);
    EXPECT_TRUE(has(all, "--first"));
    EXPECT_TRUE(has(all, "--rare-29"));
    EXPECT_FALSE(has(all, "common options"));
  }
  const std::string few = help_for(5, {"--help"});
  EXPECT_TRUE(has(few, "--rare-4"));
  EXPECT_FALSE(has(few, "common options"));
}

TEST(CommandLine, ErrorsSendToTheHelpThatShowsAllOptions) {
  std::vector<std::string> values(30);
  Command command("shardscope", "simulate", "predicts", "");
  const auto outcome = fill(command, values).parse(std::vector<std::string>{"--zzz"});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().help, "see 'shardscope simulate --help all'");
}

TEST(CommandLine, AWordThatMayBeTheModelIsAskedAbout) {
  std::string model;
  Command command("shardscope", "simulate", "predicts", "");
  command.group("Model").add("model", &model, "NAME", "what to train");
  const auto outcome = command.parse(std::vector<std::string>{"gpt2"});
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(outcome.error().help.starts_with("if it is the model, '--model gpt2'; ")) << outcome.error().help;
}

TEST(CommandLine, AValueThatIsNotOneOfFewIsAnsweredWithTheListOnce) {
  Sample s;
  EXPECT_EQ(s.parse({"--model", "m", "--unit", "xyz"}).error().help, "one of tensor, module, chunk");
}

TEST(CommandLine, OptionsOfOtherToolsGetOurName) {
  const std::vector<std::pair<std::string, std::string>> foreign{{"--nproc_per_node", "'--world-size'"},
                                                                 {"--zero_optimization", "'--stage'"},
                                                                 {"--model_name_or_path", "'--model'"}};
  for (const auto& [theirs, ours] : foreign) {
    Sample s;
    const auto outcome = s.parse({theirs, "2"});
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(outcome.error().help.starts_with("here it is " + ours)) << theirs << ": " << outcome.error().help;
  }
  // Not where the command has no such option.
  Sample s;
  EXPECT_EQ(s.parse({"--max-steps", "2"}).error().help.find("here it is"), std::string::npos);
}

TEST(CommandLine, WordsOfOtherToolsThatMeanTheSameAreTaken) {
  Sample s;
  ASSERT_TRUE(s.parse({"--model", "m", "--gpus=4", "--zero", "2", "--unit", "Chunk", "--chunk_size", "2**20"}));
  EXPECT_EQ(s.world_size, 4);
  EXPECT_EQ(s.stage, 2);
  EXPECT_EQ(s.command.describe("unit"), "--unit chunk (command line)");
  EXPECT_EQ(s.chunk.count(), 1 << 20);
}

TEST(CommandLine, AWordMeansOursWhereTheOptionHasIt) {
  const std::vector<std::string> placements{"device", "host", "static", "auto"}, devices{"cpu", "cuda"};
  EXPECT_EQ(own_word("cuda", placements), "device");
  EXPECT_EQ(own_word("CPU", placements), "host");
  EXPECT_EQ(own_word("cuda", devices), "cuda");
  EXPECT_EQ(own_word("HybridAdam", std::vector<std::string>{"sgd", "adam", "adamw"}), "adamw");
  EXPECT_EQ(own_word("float16", std::vector<std::string>{"fp32", "fp16"}), "fp16");
  EXPECT_EQ(own_word("lion", std::vector<std::string>{"sgd"}), "lion");
}

TEST(ConfigFile, AnEmptyValueIsAUsageError) {
  for (const char* line : {"device-capacity =", "device-capacity = \"\"", "unit =   # none", "quiet ="}) {
    const File file(std::string("model = m\n") + line + "\n");
    Sample s;
    const auto outcome = s.parse({"--config", file.path()});
    ASSERT_FALSE(outcome) << line;
    EXPECT_EQ(outcome.error().code, Errc::usage) << line;
    EXPECT_EQ(outcome.error().what, "the value is empty") << line;
    EXPECT_TRUE(outcome.error().where.starts_with(file.path() + ":2 (--")) << outcome.error().where;
  }
}

TEST(ConfigFile, TheCommandLineWinsAndEveryValueKnowsItsOrigin) {
  const File file("# a run\nmodel = gpt2  # small\nstage = 3\n\n--unit = \"chunk\"\nquiet\nreproducible = false\n");
  Sample s;
  const auto outcome = s.parse({"--config", file.path(), "--stage", "2"});
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(s.model, "gpt2");
  EXPECT_EQ(s.stage, 2);
  EXPECT_EQ(s.unit, UnitKind::chunk);
  EXPECT_TRUE(s.quiet);
  EXPECT_FALSE(s.reproducible);
  EXPECT_EQ(s.command.describe("unit"), "--unit chunk (" + file.path() + ":5)");
  EXPECT_EQ(s.command.origin("stage").source, Source::command_line);
}

TEST(ConfigFile, SectionsAreForOneCommand) {
  const File file("model = gpt2\n[train]\nsteps = 3\n[simulate]\nstage = 1\n");
  Sample s;
  ASSERT_TRUE(s.parse({"--config", file.path()}));
  EXPECT_EQ(s.stage, 1);
}

TEST(ConfigFile, MistakesNameFileAndLine) {
  const struct {
    std::string text;
    Errc code;
    std::string what;
    std::string where;
  } cases[] = {
      {"model = m\nstrage = 1\n", Errc::usage, "unknown option 'strage'", ":2"},
      {"model = m\nstage = x\n", Errc::usage, "'x' is not a size", ":2 (--stage)"},
      {"two words = 1\n", Errc::malformed, "'two words = 1' is not a 'name = value' line", ":1"},
      {"stage = 1\nstage = 1\n", Errc::usage, "--stage is given twice ('1', '1')", ":2"},
      {"[train\n", Errc::malformed, "'[' without ']'", ":1"},
      {"stage\n", Errc::usage, "'stage' needs a value", ":1"},
  };
  for (const auto& each : cases) {
    const File file(each.text);
    Sample s;
    const auto outcome = s.parse({"--config", file.path()});
    ASSERT_FALSE(outcome) << each.text;
    EXPECT_EQ(outcome.error().code, each.code) << each.text;
    EXPECT_EQ(outcome.error().what, each.what);
    EXPECT_EQ(outcome.error().where, file.path() + each.where);
  }
  Sample s;
  EXPECT_EQ(s.parse({"--config", "/nonexistent/x.conf"}).error().code, Errc::no_input);
}

TEST(Output, JsonContradictsAnotherFormat) {
  Sample plain;
  ASSERT_TRUE(plain.parse({"--model", "m", "--json"}));
  EXPECT_EQ(*chosen_format(plain.command, plain.output), Format::json);
  Sample both;
  ASSERT_TRUE(both.parse({"--model", "m", "--json", "--format", "csv"}));
  const auto format = chosen_format(both.command, both.output);
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code, Errc::contradiction);
  EXPECT_EQ(format.error().what, "--json (command line) contradicts --format csv (command line)");
}

}  // namespace
}  // namespace shard::cli
