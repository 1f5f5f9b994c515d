// What does a user read after a mistake: which exit code, and does the message say what, where, why and what helps?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/end_to_end/mistakes.h"

namespace shard::test {

using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// Files that the mistakes are made with, named as in the rows below.
const ScratchDirectory& inputs() {
  static const std::unique_ptr<ScratchDirectory> kInputs = [] {
    auto in = std::make_unique<ScratchDirectory>();
    in->write("syntax.json", R"({"model_type": "gpt2", "n_embd": })");
    in->write("empty.json", "");
    in->write("list.json", "[1, 2]");
    in->write("notype.json", R"({"hidden_size": 1})");
    in->write("noshape.json", R"({"model_type": "mlp", "bias": true})");
    in->write("wrong.json", R"({"model_type": "gpt2", "n_embd": "wide"})");
    in->write("negative.json", R"({"model_type": "gpt2", "n_layer": -3})");
    in->write("heads.json", R"({"model_type": "gpt2", "n_embd": 130, "n_head": 4})");
    in->write("clip.json", R"({"model_type": "clip", "hidden_size": 128})");
    in->write("bert.json", R"({"model_type": "bert", "hidden_size": 128, "num_attention_heads": 4})");
    in->write("sizes.json", R"({"model_type": "mlp", "sizes": [10]})");
    in->write(
        "small.json",
        R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 1, "n_head": 2})");
    in->write("short.txt", "hello");
    in->write("empty.txt", "");
    in->write("long.txt", std::string(1000, 'x'));
    in->write("odd.bin", "abc");
    in->write("big.bin", std::string(2000, '\xff'));
    in->write("garbage.sst", "this is no trace, but it is long enough to hold a header of one, and more than that");
    in->write("empty.sst", "");
    in->write("units.conf", "model = gpt2-nano\nunits = chunk\n");
    in->write("stage.conf", "model = gpt2-nano\nstage = 5\n");
    in->write("bare.conf", "stage = 2\n");
    in->write("stage3.conf", "model = gpt2-nano\nstage = 3\n");
    in->write("notes.txt", "what,address\n1,2\n");
    std::filesystem::create_directory(in->path() / "empty");
    EXPECT_EQ(
        shardscope({"simulate", "--model", "small.json", "--world-size", "2", "--stage", "3", "--trace", "good.sst"},
                   {.directory = in->path()})
            .exit_code,
        0);
    EXPECT_EQ(
        shardscope({"simulate", "--model", "small.json", "--trace", "other.sst"}, {.directory = in->path()}).exit_code,
        0);
    const std::string good = read_file(in->path() / "good.sst");
    in->write("cut.sst", good.substr(0, good.size() * 2 / 3));
    return in;
  }();
  return *kInputs;
}

}  // namespace

TEST_P(BadInput, SaysWhatWhereWhyAndWhatHelps) {
  const Mistake& mistake = GetParam();
  const Words before = inputs().list();
  const Outcome outcome = shardscope(mistake.arguments, {.directory = inputs().path()});
  EXPECT_EQ(outcome.exit_code, mistake.exit_code) << outcome.err;
  if (mistake.exit_code != 1 && mistake.exit_code != 3) {
    EXPECT_THAT(outcome.err, HasSubstr("shardscope: "));
  }
  for (const std::string& word : mistake.words) EXPECT_THAT(outcome.err + outcome.out, HasSubstr(word));
  if (mistake.exit_code != 3 && mistake.exit_code != 1) {
    // Nothing of a result; where JSON was asked for, the error.
    const bool json_wanted = std::ranges::find(mistake.arguments, "--json") != mistake.arguments.end();
    if (!json_wanted || outcome.out.empty()) {
      EXPECT_THAT(outcome.out, IsEmpty());
    } else {
      EXPECT_EQ(json_of(outcome, mistake.exit_code).at("error").at("exit_code"), mistake.exit_code);
    }
  }
  EXPECT_EQ(inputs().list(), before) << "something half-written was left behind";
}

namespace {

const std::vector<Mistake> kCommands = {
    {"NoCommand", {}, 2, {"which command?", "shardscope --help"}},
    {"UnknownCommand", {"simulat", "--model", "gpt2"}, 2, {"unknown command 'simulat'", "did you mean 'simulate'?"}},
    {"OptionFirst", {"--model", "gpt2"}, 2, {"the command comes first"}},
    {"ValidateNothing", {"validate"}, 2, {"ROWS"}},
    {"ValidateAbsent", {"validate", "nosuch.csv"}, 66, {"nosuch.csv"}},
    {"UnknownOption", {"simulate", "--modle", "gpt2"}, 2, {"unknown option '--modle'", "did you mean '--model'?"}},
    {"NoValue", {"simulate", "--model"}, 2, {"--model needs a value", "--model NAME|PATH"}},
    {"ModelMissing", {"simulate"}, 2, {"--model is required", "--model NAME|PATH"}},
    {"Positional", {"simulate", "gpt2-nano"}, 2, {"unexpected argument 'gpt2-nano'"}},
    {"ProgramWithoutDashes", {"dryrun", "train.py"}, 2, {"'shardscope dryrun -- python3 train.py'"}},
    {"Twice", {"simulate", "--model", "gpt2", "--model", "gpt2-xl"}, 2, {"--model is given twice"}},
    {"UnknownValue", {"simulate", "--model", "gpt2-nano", "--unit", "chnk"}, 2, {"'chnk'", "did you mean 'chunk'?"}},
    {"OutOfRange",
     {"simulate", "--model", "gpt2-nano", "--stage", "4"},
     2,
     {"--stage: '4' is out of range", "at most 3"}},
    {"NotANumber", {"simulate", "--model", "gpt2-nano", "--stage", "three"}, 2, {"--stage: 'three'", "32Mi"}},
    {"UnknownPass",
     {"plan", "--model", "gpt2-nano", "--after", "alocate"},
     2,
     {"there is no pass 'alocate'", "allocate"}},
    {"VerifiedHalfWay",
     {"plan", "--model", "gpt2-nano", "--after", "shard", "--verify"},
     78,
     {"--verify checks whole plans", "--after shard"}},
    {"UnknownRule", {"search", "--model", "gpt2-nano", "--rule", "gemni"}, 2, {"did you mean 'gemini'?"}},
    {"NothingToSearch", {"search"}, 2, {"neither --model nor --parameters"}},
    {"TwoThingsToSearch",
     {"search", "--model", "gpt2", "--parameters", "list.json"},
     78,
     {"--model gpt2", "--parameters list.json", "keep one of them"}},
    {"TwoFormats",
     {"simulate", "--model", "gpt2-nano", "--json", "--format", "csv"},
     78,
     {"--json", "--format csv", "leave one of them out"}},
    {"FrameworkMistyped",
     {"simulate", "--parameters", "list.json", "--like", "colossalai-gemni"},
     2,
     {"no rules are known for 'colossalai-gemni'", "did you mean 'colossalai-gemini@"}},
    {"GeminiOptionWithoutGemini",
     {"simulate", "--model", "gpt2-nano", "--offload-optim-frac", "1"},
     78,
     {"--offload-optim-frac 1", "--like colossalai-gemini"}},
    {"GeminiOfNothing", {"simulate", "--like", "colossalai-gemini"}, 2, {"neither --model nor --parameters"}},
    {"GeminiOfTwoThings",
     {"simulate", "--model", "gpt2", "--parameters", "list.json", "--like", "colossalai-gemini"},
     78,
     {"--model gpt2", "--parameters list.json", "keep one of them"}},
    {"GeminiListAbsent",
     {"simulate", "--parameters", "nosuch.json", "--like", "colossalai-gemini", "--chunk-size", "8"},
     66,
     {"nosuch.json"}},
    {"GeminiChunkNotDivisible",
     {"simulate", "--model", "gpt2-nano", "--like", "colossalai-gemini", "--world-size", "4", "--chunk-size", "10"},
     78,
     {"--chunk-size 10", "--world-size 4", "try: --chunk-size 12"}},
    {"GeminiFraction",
     {"simulate", "--model", "gpt2-nano", "--like", "colossalai-gemini", "--shard-param-frac", "1.5"},
     2,
     {"--shard-param-frac: '1.5' is out of range", "at most 1"}},
    {"GeminiStage",
     {"simulate", "--model", "gpt2-nano", "--like", "colossalai-gemini", "--stage", "2"},
     78,
     {"--stage 2", "no meaning for --like", "leave --stage out"}},
    {"SeveralTablesAsCsv", {"inspect", "good.sst", "--format", "csv"}, 78, {"holds one table", "--json"}},
    {"ConfigAbsent", {"simulate", "--config", "nosuch.conf"}, 66, {"nosuch.conf: cannot read the configuration"}},
    {"ConfigUnknownOption",
     {"simulate", "--config", "units.conf"},
     2,
     {"units.conf:2", "'units'", "did you mean '--unit'?"}},
    {"ConfigOutOfRange", {"simulate", "--config", "stage.conf"}, 2, {"stage.conf:2", "--stage", "at most 3"}},
    {"ConfigContradicts",
     {"simulate", "--config", "stage3.conf", "--partition", "parameter"},
     78,
     {"--partition parameter (command line)", "--stage 3 (stage3.conf:2)", "--stage 1"}},
};

Words model(const std::string& file) {
  return {"simulate", "--model", file};
}

const std::vector<Mistake> kModels = {
    {"UnknownModel",
     model("gpt2-meduim"),
     2,
     {"'gpt2-meduim' is neither", "did you mean 'gpt2-medium'?", "config.json"}},
    {"AbsentConfig", model("./nosuch.json"), 66, {"./nosuch.json: cannot read the model"}},
    {"DirectoryWithoutConfig", model("empty"), 66, {"the directory has no config.json"}},
    {"NotJson", model("syntax.json"), 65, {"syntax.json:1:34", "is not JSON"}},
    {"EmptyFile", model("empty.json"), 65, {"empty.json", "is not JSON"}},
    {"NotAnObject", model("list.json"), 65, {"list.json#/", "is not a JSON object"}},
    {"NoFamily", model("notype.json"), 65, {"notype.json#/model_type", "is missing", "gpt2"}},
    {"ShapeUnknown", model("noshape.json"), 65, {"noshape.json#/sizes", "is missing"}},
    {"WrongField", model("wrong.json"), 65, {"wrong.json#/n_embd", "\"wide\"", "not a positive integer"}},
    {"NegativeField", model("negative.json"), 65, {"negative.json#/n_layer", "-3"}},
    {"MlpOfOneSize", model("sizes.json"), 65, {"sizes.json#/sizes"}},
    {"UnknownFamily", model("clip.json"), 78, {"clip.json#/model_type", "\"clip\"", "mlp, bert, bloom"}},
    {"Encoder", model("bert.json"), 78, {"bert.json#/model_type", "an encoder", "inspect"}},
    {"NotTrained",
     {"train", "--model", "mixtral-8x7b", "--data", "random"},
     78,
     {"mixtral-8x7b#/model_type", "predicted and not trained", "expert"}},
    {"HeadsDoNotDivide", model("heads.json"), 78, {"heads.json#/n_head", "does not divide n_embd 130"}},
    {"SequenceTooLong",
     {"simulate", "--model", "gpt2-nano", "--sequence", "512"},
     78,
     {"--sequence", "512", "more than the longest sequence", "256"}},
    {"ParametersAbsent", {"search", "--parameters", "nosuch.json"}, 66, {"nosuch.json"}},
    {"ParametersMalformed", {"search", "--parameters", "list.json"}, 65, {"list.json#/0", "name, shape and numel"}},
    {"ConfigAsParameters", {"search", "--parameters", "small.json"}, 65, {"goes to --model"}},
};

const std::vector<Mistake> kTraces = {
    {"DeviceUnknown", {"inspect", "--device", "cpu"}, 2, {"'cpu'", "cuda"}},
    {"TraceAbsent", {"inspect", "nosuch.sst"}, 66, {"nosuch.sst", "cannot be read"}},
    {"TraceIsADirectory", {"inspect", "empty"}, 66, {"empty", "directory"}},
    {"TraceIsGarbage", {"inspect", "garbage.sst"}, 65, {"garbage.sst", "byte 0", "not a shardscope trace"}},
    {"TraceIsEmpty", {"inspect", "empty.sst"}, 65, {"empty.sst", "the file is empty"}},
    {"CompareOne", {"compare", "good.sst"}, 2, {"OTHER is missing"}},
    {"CompareAbsent", {"compare", "nosuch.sst", "good.sst"}, 66, {"nosuch.sst"}},
    {"CompareTruncated", {"compare", "cut.sst", "good.sst", "--check"}, 1, {"incomplete"}},
    {"CompareOtherPlans", {"compare", "good.sst", "other.sst"}, 78, {"two different plans", "--force"}},
    {"CompareAStrategyWithATrace",
     {"compare", "stage3.conf", "good.sst"},
     78,
     {"stage3.conf is a strategy, and good.sst is none", "simulate --config stage3.conf"}},
    {"CompareAStrategyWithNothing", {"compare", "stage3.conf", "nosuch.sst"}, 66, {"nosuch.sst"}},
    {"CompareStrategiesWithoutAModel",
     {"compare", "bare.conf", "stage3.conf"},
     2,
     {"bare.conf: --model is required", "model = NAME"}},
    {"CompareStrategiesThatContradict",
     {"compare", "stage3.conf", "stage3.conf", "--model", "gpt2-nano", "--partition", "parameter"},
     78,
     {"--partition parameter (command line)", "--stage 3 (stage3.conf:2)"}},
    {"CompareStrategiesUnknownOption",
     {"compare", "units.conf", "stage3.conf", "--model", "gpt2-nano"},
     2,
     {"units.conf:2", "'units'", "did you mean '--unit'?"}},
    {"CompareTracesWithAStage",
     {"compare", "good.sst", "good.sst", "--stage", "2"},
     78,
     {"--stage=2 is of strategies", "leave it out"}},
    {"CompareTracesByStack",
     {"compare", "good.sst", "good.sst", "--by", "stack"},
     78,
     {"--by stack (command line) is of two memory snapshots", "leave it out"}},
    {"ConvertToNothing", {"convert", "good.sst"}, 2, {"OUTPUT is missing"}},
    {"ConvertSeveralToNothing", {"convert", "good.sst", "other.sst", "out.json"}, 2, {"-o FILE"}},
    {"ConvertToUnknownForm", {"convert", "good.sst", "out.xyz"}, 2, {"out.xyz", "--to perfetto"}},
    {"ConvertIntoNowhere", {"convert", "good.sst", "nosuch/out.json"}, 73, {"nosuch/out.json", "cannot be created"}},
    {"ConvertOntoItself", {"convert", "good.sst", "good.sst", "--to", "chrome"}, 78, {"would be lost"}},
    {"ConvertGarbage", {"convert", "garbage.sst", "out.json"}, 65, {"byte 0"}},
    {"ReplayAbsent", {"inspect", "nosuch.csv", "--replay-allocator", "pytorch"}, 66, {"nosuch.csv"}},
    {"ReplayOther", {"inspect", "notes.txt", "--replay-allocator", "pytorch"}, 65, {"notes.txt:1", "header"}},
    {"ReplayUnknownAllocator", {"inspect", "notes.txt", "--replay-allocator", "torch"}, 2, {"'torch'", "pytorch"}},
};

INSTANTIATE_TEST_SUITE_P(Commands, BadInput, testing::ValuesIn(kCommands), name_of);
INSTANTIATE_TEST_SUITE_P(Models, BadInput, testing::ValuesIn(kModels), name_of);
INSTANTIATE_TEST_SUITE_P(Traces, BadInput, testing::ValuesIn(kTraces), name_of);

TEST(TruncatedTrace, WhatIsCompleteLoads) {
  const Outcome outcome = shardscope({"inspect", "cut.sst"}, {.directory = inputs().path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("incomplete at byte"));
}

}  // namespace
}  // namespace shard::test
