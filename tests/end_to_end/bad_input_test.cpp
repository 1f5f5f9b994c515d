// What does a user read after a mistake: which exit code, and does the message say what, where, why and what helps?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

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
    in->write("bert.json", R"({"model_type": "bert", "hidden_size": 128})");
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

struct Mistake {
  std::string name;
  Words arguments;
  int exit_code;
  Words words;  ///< each must be in the message
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.name;
}

class BadInput : public testing::TestWithParam<Mistake> {};

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
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  EXPECT_EQ(inputs().list(), before) << "something half-written was left behind";
}

std::string name_of(const testing::TestParamInfo<Mistake>& info) {
  return info.param.name;
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<Mistake> of_commands() {
  return {
      {"NoCommand", {}, 2, {"which command?", "shardscope --help"}},
      {"UnknownCommand", {"simulat", "--model", "gpt2"}, 2, {"unknown command 'simulat'", "did you mean 'simulate'?"}},
      {"OptionFirst", {"--model", "gpt2"}, 2, {"the command comes first"}},
      {"NotInThisVersion", {"verify", "--model", "gpt2"}, 69, {"'verify' is not in this version"}},
      {"UnknownOption", {"simulate", "--modle", "gpt2"}, 2, {"unknown option '--modle'", "did you mean '--model'?"}},
      {"NoValue", {"simulate", "--model"}, 2, {"--model needs a value", "--model NAME|PATH"}},
      {"ModelMissing", {"simulate"}, 2, {"--model is required", "--model NAME|PATH"}},
      {"Positional", {"simulate", "gpt2-nano"}, 2, {"unexpected argument 'gpt2-nano'"}},
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
      {"ConfigAbsent", {"simulate", "--config", "nosuch.conf"}, 66, {"nosuch.conf: cannot read the file of options"}},
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
}

std::vector<Mistake> of_models() {
  const auto model = [](const std::string& file) { return Words{"simulate", "--model", file}; };
  return {
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
      {"UnknownFamily", model("bert.json"), 78, {"bert.json#/model_type", "\"bert\"", "gpt2, llama, mlp"}},
      {"HeadsDoNotDivide", model("heads.json"), 78, {"heads.json#/n_head", "does not divide n_embd 130"}},
      {"SequenceTooLong",
       {"simulate", "--model", "gpt2-nano", "--sequence", "512"},
       78,
       {"--sequence", "512", "more than the longest sequence", "256"}},
      {"ParametersAbsent", {"search", "--parameters", "nosuch.json"}, 66, {"nosuch.json"}},
      {"ParametersMalformed", {"search", "--parameters", "list.json"}, 65, {"list.json#/0", "name, shape and numel"}},
      {"ConfigAsParameters", {"search", "--parameters", "small.json"}, 65, {"goes to --model"}},
  };
}

std::vector<Mistake> of_strategies() {
  const auto nano = [](const Words& more) { return with({"simulate", "--model", "gpt2-nano"}, more); };
  return {
      {"ChunkSizeAndWorldSize",
       nano({"--unit", "chunk", "--chunk-size", "1000", "--world-size", "3"}),
       78,
       {"chunk size 1000 elements is not a multiple of world size 3", "--chunk-size 1002"}},
      {"BatchAndWorldSize",
       nano({"--world-size", "4", "--global-batch", "6"}),
       78,
       {"global batch 6", "micro-batch 1 x world size 4", "--global-batch 4"}},
      {"ChunkSizeWithoutChunks",
       nano({"--unit", "module", "--chunk-size", "64Ki"}),
       78,
       {"--chunk-size 64Ki", "--unit module", "--unit chunk"}},
      {"ChunkBytesWithoutChunks", nano({"--chunk-bytes", "1Mi"}), 78, {"--chunk-bytes 1Mi", "--unit chunk"}},
      {"ChunkSizeTwice",
       nano({"--unit", "chunk", "--chunk-size", "64Ki", "--chunk-bytes", "1Mi"}),
       78,
       {"both set the chunk size"}},
      {"ChunkBytesOdd", nano({"--unit", "chunk", "--chunk-bytes", "1001"}), 78, {"whole number", "--chunk-bytes 1004"}},
      {"ChunkSizeZero", nano({"--unit", "chunk", "--chunk-size", "0"}), 78, {"chunk size", "--chunk-size search"}},
      {"ChunkSizeUnparsable", nano({"--unit", "chunk", "--chunk-size", "64Kb"}), 2, {"'64Kb' is not a size", "32Mi"}},
      {"VariableChunksUnparsable", nano({"--unit", "chunk", "--chunk-size", "variable:x"}), 2, {"'x' is not a size"}},
      {"VariableChunksOfNothing",
       nano({"--unit", "chunk", "--chunk-size", "variable:0"}),
       78,
       {"--chunk-size variable:0 (command line) bounds chunks by 0 elements", "variable:32Mi"}},
      {"VariableChunksWithoutChunks",
       nano({"--chunk-size", "variable"}),
       78,
       {"--chunk-size variable (command line)", "--unit module (default)", "--unit chunk"}},
      {"VariableChunksOfTooManyRanks",
       nano({"--unit", "chunk", "--stage", "3", "--world-size", "100003", "--chunk-size", "variable:1000"}),
       78,
       {"--chunk-size variable:1000 (command line)", "allows a waste of 0.1 %", "--chunk-size search"}},
      {"VariableChunksOfGemini",
       nano({"--like", "colossalai-gemini", "--world-size", "2", "--chunk-size", "variable"}),
       78,
       {"--chunk-size variable (command line)", "its chunks have one size"}},
      {"ScalesCross",
       nano({"--precision", "fp16", "--min-scale", "2", "--initial-scale", "1"}),
       78,
       {"--min-scale 2 (command line) is above --initial-scale 1 (command line)"}},
      {"LargestScaleBelowTheFirst",
       nano({"--precision", "fp16", "--max-scale", "2"}),
       78,
       {"--max-scale 2 (command line) is below --initial-scale 65536 (default)"}},
      {"NoScalerInBf16", nano({"--precision", "bf16", "--growth-interval", "2"}), 78, {"--growth-interval 2", "bf16"}},
      {"NormOfZero", nano({"--clip-norm", "0"}), 78, {"--clip-norm 0", "leave --clip-norm out"}},
      {"PredivideByZero", nano({"--gradient-predivide-factor", "0"}), 2, {"--gradient-predivide-factor"}},
      {"TensorParallelAndWorldSize",
       nano({"--ranks", "6", "--tensor-parallel", "4"}),
       78,
       {"--tensor-parallel 4 (command line) does not divide --world-size 6 (command line)", "--tensor-parallel 2"}},
      {"TensorParallelAndHeads",
       nano({"--world-size", "3", "--tensor-parallel", "3", "--unit", "chunk", "--chunk-size", "search"}),
       78,
       {"--model gpt2-nano (command line): --tensor-parallel 3 (command line) does not divide the 4 attention heads"}},
      {"TensorParallelAndHidden",
       {"train", "--model", "gpt2-nano", "--data", "random", "--ranks", "3", "--tensor-parallel", "3",
        "--tensor-parallel-layout", "colossalai"},
       78,
       {"--model gpt2-nano (command line): --tensor-parallel 3 (command line) does not divide the hidden size 128"}},
      {"OwnersWithoutShards",
       nano({"--chunk-owner", "rank"}),
       78,
       {"--chunk-owner rank (command line)", "--stage 0 (default)", "--stage 3"}},
      // Options that contradict each other, or say nothing beside each other: sim/commands/contradictions.cpp.
      {"DeviceAndHost",
       nano({"--placement", "device", "--param-placement", "host"}),
       78,
       {"--param-placement host (command line)", "--placement device (command line)", "--placement static"}},
      {"HostAndFraction",
       nano({"--placement", "host", "--optimizer-placement", "0.5"}),
       78,
       {"--optimizer-placement 0.5", "--placement host", "--placement static"}},
      {"PrefetchOfNothing",
       nano({"--stage", "0", "--prefetch", "5"}),
       78,
       {"--prefetch 5", "--stage 0", "gathers no parameters", "--stage 3, or leave --prefetch out"}},
      {"DiskPathForNothing",
       nano({"--disk-path", "."}),
       78,
       {"--disk-path .", "--optimizer-placement", "leave --disk-path out"}},
      {"StorageOfNoChunks",
       nano({"--distributed-storage", "--unit", "module"}),
       78,
       {"--distributed-storage", "--unit module", "--unit chunk"}},
      {"OwnersOfNothing",
       nano({"--stage", "0", "--partition", "parameter"}),
       78,
       {"--partition parameter", "--stage 0", "--stage 1"}},
      {"LayoutOfNoSplit",
       nano({"--tensor-parallel", "1", "--tensor-parallel-layout", "megatron"}),
       78,
       {"--tensor-parallel-layout megatron", "--tensor-parallel 1"}},
      {"MomentsOfSgd",
       {"train", "--model", "gpt2-nano", "--data", "random", "--optimizer", "sgd", "--beta1", "0.5"},
       78,
       {"--beta1 0.5", "--optimizer sgd", "--optimizer adamw"}},
      {"GridsOfExact",
       {"search", "--model", "gpt2-nano", "--rule", "exact", "--grids", "5"},
       78,
       {"--grids 5", "--rule exact", "--rule gemini-v0.1.9"}},
      {"IntervalOfExact",
       {"search", "--model", "gpt2-nano", "--rule", "exact", "--search-interval", "64"},
       78,
       {"--search-interval 64", "--rule exact", "--rule gemini"}},
      {"FilterOfExact",
       {"search", "--model", "gpt2-nano", "--rule", "exact", "--no-filter"},
       78,
       {"--no-filter", "--rule exact", "leave --no-filter out"}},
      {"StepOfAParameterList",
       {"search", "--parameters", "list.json", "--stage", "2", "--micro-batch", "9"},
       78,
       {"--stage 2", "--parameters list.json", "--model"}},
      {"StepOfNoForecast",
       {"search", "--model", "gpt2-nano", "--no-forecast", "--recompute", "block"},
       78,
       {"--recompute block", "--no-forecast"}},
      // Sizes: one bound for all options.
      {"ChunkOf2To63",
       nano({"--unit", "chunk", "--chunk-size", "9223372036854775807"}),
       2,
       {"--chunk-size", "too large", "at most 2^60"}},
      {"ChunkOf2To61",
       nano({"--unit", "chunk", "--chunk-size", "2305843009213693952"}),
       2,
       {"--chunk-size", "too large", "at most 2^60"}},
      {"ChunkOf2To60", nano({"--unit", "chunk", "--chunk-size", "1048576Ti"}), 78, {"more than 2^48"}},
      {"ChunkBytesOf2To63",
       nano({"--unit", "chunk", "--chunk-bytes", "9223372036854775807"}),
       2,
       {"--chunk-bytes", "too large", "at most 2^60"}},
      {"MicroBatchOf2To60", nano({"--micro-batch", "1048576Ti"}), 2, {"--micro-batch", "at most 1099511627776"}},
      {"TooManyMicroSteps",
       nano({"--global-batch", "1048576Ti"}),
       78,
       {"micro-steps", "at most 1048576", "--global-batch 1048576"}},
      {"OwnersOfUnitsAndOfParameters",
       nano({"--chunk-owner", "rank", "--stage", "1", "--partition", "parameter"}),
       78,
       {"--chunk-owner rank", "--partition parameter (command line)", "--partition flat"}},
      {"OwnersAndBuckets",
       nano({"--chunk-owner", "rank", "--stage", "3", "--reduce-scatter-bucket-size-mb", "4"}),
       78,
       {"--reduce-scatter-bucket-size-mb 4 (command line)", "--chunk-owner rank (command line)"}},
      {"ReuseInTwoPlaces",
       nano({"--reuse-fp16-shard", "--stage", "3", "--precision", "bf16", "--param-placement", "host",
             "--grad-placement", "device"}),
       78,
       {"--grad-placement device (command line)", "--reuse-fp16-shard", "--param-placement host (command line)",
        "--grad-placement host"}},
      {"ChunkPerTensorWithoutChunks",
       nano({"--chunk-size", "none"}),
       78,
       {"--chunk-size none (command line)", "--unit module (default)", "--unit chunk"}},
      {"WholeChunksWithoutChunks",
       nano({"--no-distributed-storage"}),
       78,
       {"--no-distributed-storage (command line) keeps every chunk whole", "--unit module (default)"}},
      {"KeptWithoutGathers",
       nano({"--keep-gathered", "--stage", "2"}),
       78,
       {"--keep-gathered (command line)", "--stage 2 (command line)", "--stage 3"}},
      {"ReuseWithAccumulation",
       nano({"--reuse-fp16-shard", "--stage", "3", "--world-size", "2", "--precision", "fp16", "--global-batch", "8"}),
       78,
       {"--reuse-fp16-shard (command line)", "--global-batch 8 (command line)", "--global-batch 2"}},
      {"ReuseInFp32",
       nano({"--reuse-fp16-shard", "--stage", "3", "--world-size", "2"}),
       78,
       {"--reuse-fp16-shard (command line)", "--precision fp32 (default)", "--precision bf16"}},
      {"ReuseWithoutShards",
       nano({"--reuse-fp16-shard", "--stage", "2", "--precision", "bf16"}),
       78,
       {"--reuse-fp16-shard (command line)", "--stage 2 (command line)", "--stage 3"}},
      {"ReuseOfHalfTheSize",
       nano({"--reuse-fp16-shard", "--stage", "3", "--precision", "bf16", "--fp32-reduce-scatter"}),
       78,
       {"--reuse-fp16-shard (command line)", "--fp32-reduce-scatter (command line)"}},
      {"BucketsWithoutScattering",
       nano({"--reduce-scatter-bucket-size-mb", "25"}),
       78,
       {"--reduce-scatter-bucket-size-mb 25 (command line)", "--stage 0 (default)", "--stage 2"}},
      {"PartitionAndStage",
       nano({"--partition", "parameter", "--stage", "2"}),
       78,
       {"--partition parameter (command line) belongs to stage 1", "--stage 2 (command line)", "--stage 1"}},
      {"FreezeNothingKnown",
       nano({"--freeze", "transformer.wte.weigth"}),
       78,
       {"--freeze transformer.wte.weigth (command line) matches no parameter of gpt2-nano", "transformer.wte.weight"}},
      {"FreezeSomethingUnknown",
       nano({"--freeze", "*.bias", "--freeze", "*.wte.weight,transformer.wpe.weigth"}),
       78,
       {"--freeze transformer.wpe.weigth (command line) matches no parameter of gpt2-nano", "transformer.wpe.weight"}},
      {"FreezeNothingKnownForChunks",
       nano({"--freeze", "*.bias", "--freeze", "no.such", "--unit", "chunk", "--chunk-size", "search"}),
       78,
       {"--freeze no.such (command line) matches no parameter of gpt2-nano"}},
      {"SearchFreezesNothingKnown",
       {"search", "--model", "gpt2-nano", "--freeze", "*.bias,no.such"},
       78,
       {"--freeze no.such (command line) matches no parameter of gpt2-nano"}},
      {"FreezeAll",
       {"train", "--model", "gpt2-nano", "--data", "random", "--freeze", "*.bias", "--freeze", "*.weight"},
       78,
       {"--freeze *.bias *.weight (command line) leaves no parameter of gpt2-nano to train"}},
      {"FreezeAFrameworksModel",
       nano({"--like", "pytorch@1.8", "--freeze", "*.bias"}),
       78,
       {"--freeze", "leave --freeze out"}},
      {"MinimumAboveMaximum",
       {"search", "--model", "gpt2-nano", "--min-chunk", "2Mi", "--max-chunk", "1Mi"},
       78,
       {"--min-chunk 2097152 is above --max-chunk 1048576"}},
      {"UnknownCluster",
       nano({"--cluster", "a100"}),
       2,
       {"a100 is neither a known cluster nor a file", "a100-40gb-x8"}},
      {"AbsentCluster", nano({"--cluster", "nosuch.json"}), 66, {"nosuch.json"}},
      {"UnknownFramework", nano({"--like", "pytroch@1.8"}), 2, {"pytroch", "pytorch"}},
      {"FrameworkBeyondItsStages", nano({"--like", "pytorch@1.8", "--stage", "3"}), 78, {"stage"}},
      {"DoesNotFit",
       nano({"--world-size", "2", "--stage", "1", "--device-capacity", "14Mi"}),
       3,
       {"does not fit", "try: --", "largest at the peak", "moment"}},
      {"HostDoesNotFit",
       nano({"--placement", "host", "--host-capacity", "4Mi"}),
       3,
       {"does not fit", "host memory", "try: --", "largest at the peak", "in host memory"}},
      {"DiskWithoutAPath",
       nano({"--optimizer-placement", "disk"}),
       78,
       {"--optimizer-placement disk", "--disk-path is not given", "--disk-path DIR"}},
      {"ParametersOnDisk", nano({"--param-placement", "disk"}), 78, {"--param-placement", "only optimizer state"}},
      {"FractionAboveOne", nano({"--grad-placement", "1.5"}), 2, {"--grad-placement", "not between 0 and 1"}},
      {"PlacementIsAWord", nano({"--optimizer-placement", "gpu"}), 2, {"'gpu'", "neither a memory nor a fraction"}},
      {"StaticOfNothing", nano({"--placement", "static"}), 78, {"--placement static", "--optimizer-placement"}},
      {"AutomaticWithoutACapacity",
       nano({"--placement", "auto"}),
       78,
       {"--placement auto", "--device-capacity", "cluster"}},
      {"MarginWithoutAutomatic",
       nano({"--gpu-margin-mem-ratio", "0.5"}),
       78,
       {"--gpu-margin-mem-ratio", "--placement"}},
      {"MarginAboveOne",
       nano({"--placement", "auto", "--device-capacity", "20Mi", "--gpu-margin-mem-ratio", "2"}),
       2,
       {"--gpu-margin-mem-ratio", "at most 1"}},
      {"FromTraceWithoutAutomatic", nano({"--from-trace", "good.sst"}), 78, {"--from-trace", "--placement auto"}},
      {"FromAnAbsentTrace",
       nano({"--placement", "auto", "--device-capacity", "20Mi", "--from-trace", "nosuch.sst"}),
       66,
       {"nosuch.sst"}},
      {"FromGarbage",
       nano({"--placement", "auto", "--device-capacity", "20Mi", "--from-trace", "garbage.sst"}),
       65,
       {"garbage.sst", "byte 0"}},
      {"PlacementOfAnotherFramework",
       nano({"--like", "pytorch@1.8", "--placement", "host"}),
       78,
       {"--placement host", "--like", "leave --placement out"}},
      {"TraceIntoNowhere", nano({"--trace", "nosuch/x.sst"}), 73, {"nosuch/x.sst", "cannot be created", "nosuch"}},
  };
}

std::vector<Mistake> of_traces() {
  return {
      {"TraceAbsent", {"inspect", "nosuch.sst"}, 66, {"nosuch.sst", "cannot be read"}},
      {"TraceIsADirectory", {"inspect", "empty"}, 66, {"empty", "directory"}},
      {"TraceIsGarbage", {"inspect", "garbage.sst"}, 65, {"garbage.sst", "byte 0", "not a shardscope trace"}},
      {"TraceIsEmpty", {"inspect", "empty.sst"}, 65, {"empty.sst", "the file is empty"}},
      {"CompareOne", {"compare", "good.sst"}, 2, {"OTHER is missing"}},
      {"CompareAbsent", {"compare", "nosuch.sst", "good.sst"}, 66, {"nosuch.sst"}},
      {"CompareTruncated", {"compare", "cut.sst", "good.sst", "--check"}, 1, {"incomplete"}},
      {"CompareOtherPlans", {"compare", "good.sst", "other.sst"}, 78, {"two different plans", "--force"}},
      {"ConvertToNothing", {"convert", "good.sst"}, 2, {"OUTPUT is missing"}},
      {"ConvertToUnknownForm", {"convert", "good.sst", "out.xyz"}, 2, {"out.xyz", "--to perfetto"}},
      {"ConvertIntoNowhere", {"convert", "good.sst", "nosuch/out.json"}, 73, {"nosuch/out.json", "cannot be created"}},
      {"ConvertOntoItself", {"convert", "good.sst", "good.sst", "--to", "chrome"}, 78, {"would be lost"}},
      {"ConvertGarbage", {"convert", "garbage.sst", "out.json"}, 65, {"byte 0"}},
      {"ReplayAbsent", {"inspect", "nosuch.csv", "--replay-allocator", "pytorch"}, 66, {"nosuch.csv"}},
      {"ReplayOther", {"inspect", "notes.txt", "--replay-allocator", "pytorch"}, 65, {"notes.txt:1", "header"}},
      {"ReplayUnknownAllocator", {"inspect", "notes.txt", "--replay-allocator", "torch"}, 2, {"'torch'", "pytorch"}},
  };
}

std::vector<Mistake> of_training() {
  const auto small = [](const Words& more) { return with({"train", "--model", "small.json"}, more); };
  const auto random = [](const Words& more) {
    return with({"train", "--model", "gpt2-nano", "--data", "random"}, more);
  };
  return {
      {"NoData", small({}), 2, {"--data is required", "text:FILE"}},
      {"DataOfNoKind", small({"--data", "long.txt"}), 2, {"'long.txt' names no kind of data", "--data text:long.txt"}},
      {"TextAbsent", small({"--data", "text:nosuch.txt"}), 66, {"nosuch.txt", "No such file"}},
      {"TextIsADirectory", small({"--data", "text:empty"}), 66, {"empty", "regular file"}},
      {"TextEmpty", small({"--data", "text:empty.txt"}), 65, {"empty.txt", "is empty"}},
      {"TextTooShort", small({"--data", "text:short.txt"}), 65, {"holds 5 tokens", "33", "--sequence 4"}},
      {"TokensBeyondVocabulary", small({"--data", "text:long.txt"}), 78, {"token 120", "vocabulary of 64"}},
      {"TokenFileOdd", small({"--data", "odd.bin"}), 65, {"odd.bin", "odd number of bytes"}},
      {"TokenFileBeyondVocabulary", small({"--data", "big.bin"}), 78, {"token 65535 at position 0", "64"}},
      {"ScalerWithoutFp16", random({"--hysteresis", "1"}), 78, {"--hysteresis 1", "--precision", "fp16"}},
      {"InjectionWithoutFp16", random({"--inject-overflow", "0:1"}), 78, {"--inject-overflow 0:1", "--precision"}},
      {"InjectionOnNoRank",
       random({"--precision", "fp16", "--inject-overflow", "1:1"}),
       78,
       {"--inject-overflow 1:1", "--world-size", "from 0 to 0"}},
      {"InjectionInNoStep",
       random({"--precision", "fp16", "--steps", "3", "--inject-overflow", "0:4"}),
       78,
       {"--inject-overflow 0:4", "--steps 3", "from 1 to 3"}},
      {"InjectionIsAWord",
       random({"--precision", "fp16", "--inject-overflow", "0,1"}),
       2,
       {"--inject-overflow 0,1", "0:1"}},
      {"MoreWarmUpThanSteps", random({"--steps", "3", "--warmup-steps", "4"}), 78, {"--warmup-steps 4", "--steps 3"}},
      {"LowestRateWithoutSchedule", random({"--min-lr", "0"}), 78, {"--min-lr 0", "--lr-schedule"}},
      {"LowestRateAboveTheRate", random({"--min-lr", "1", "--lr-schedule", "cosine"}), 78, {"--min-lr 1", "--lr"}},
      {"BetaOfOne", random({"--beta2", "1"}), 78, {"--beta2 1"}},
      {"UnknownSchedule", random({"--lr-schedule", "cosin"}), 2, {"--lr-schedule", "cosine"}},
      {"TextForAnMlp", {"train", "--model", "mlp-20x2000", "--data", "text:long.txt"}, 78, {"mlp", "--data random"}},
      {"RateIsAWord", random({"--lr", "fast"}), 2, {"--lr: 'fast' is not a number", "3e-4"}},
      {"NoSteps", random({"--steps", "0"}), 2, {"--steps", "at least 1"}},
      {"TrainTraceIntoNowhere", random({"--trace", "nosuch/a.sst"}), 73, {"--trace", "nosuch", "mkdir -p"}},
      {"TrainTraceIsADirectory", random({"--trace", "empty"}), 73, {"--trace", "'empty' is a directory"}},
      {"PredictedTraceIntoNowhere",
       random({"--trace-predicted", "nosuch/a.sst"}),
       73,
       {"--trace-predicted", "mkdir -p"}},
      {"LogIntoNowhere", random({"--log", "nosuch/a.jsonl"}), 73, {"--log", "nosuch"}},
      {"TrainBatchAndRanks",
       random({"--ranks", "2", "--global-batch", "3"}),
       78,
       {"global batch 3", "--global-batch 2"}},
      {"TrainDoesNotFit",
       random({"--ranks", "2", "--stage", "1", "--device-capacity", "14Mi", "--trace", "a.sst"}),
       3,
       {"--device-capacity", "14680064 are allowed", "moment", "try: --"}},
      {"DiskPathAbsent",
       random({"--optimizer-placement", "disk", "--disk-path", "nosuch"}),
       73,
       {"--disk-path", "nosuch", "mkdir -p"}},
      {"TrainHostDoesNotFit",
       random({"--ranks", "2", "--stage", "3", "--placement", "host", "--host-capacity", "4Mi"}),
       3,
       {"--host-capacity", "4194304 are allowed", "try: --"}},
      {"TrainAsCsv", random({"--format", "csv"}), 78, {"--format csv", "--json"}},
      {"TrainPositional", random({"gpt2"}), 2, {"unexpected argument 'gpt2'"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Commands, BadInput, testing::ValuesIn(of_commands()), name_of);
INSTANTIATE_TEST_SUITE_P(Models, BadInput, testing::ValuesIn(of_models()), name_of);
INSTANTIATE_TEST_SUITE_P(Strategies, BadInput, testing::ValuesIn(of_strategies()), name_of);
INSTANTIATE_TEST_SUITE_P(Traces, BadInput, testing::ValuesIn(of_traces()), name_of);
INSTANTIATE_TEST_SUITE_P(Training, BadInput, testing::ValuesIn(of_training()), name_of);

TEST(TruncatedTrace, WhatIsCompleteLoads) {
  const Outcome outcome = shardscope({"inspect", "cut.sst"}, {.directory = inputs().path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("incomplete at byte"));
}

}  // namespace
}  // namespace shard::test
