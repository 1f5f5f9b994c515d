// What does a user read after a mistake about training: its data, its steps, its files?
#include "tests/end_to_end/mistakes.h"

namespace shard::test {
namespace {

Words small(const Words& more) {
  return with({"train", "--model", "small.json"}, more);
}
Words random(const Words& more) {
  return with({"train", "--model", "gpt2-nano", "--data", "random"}, more);
}

const std::vector<Mistake> kTraining = {
    {"NoData", small({}), 2, {"--data is required", "text:FILE"}},
    {"VerifyNoData", {"verify", "--model", "gpt2-nano"}, 2, {"--data is required", "text:FILE"}},
    {"VerifyNoSteps", {"verify", "--model", "gpt2-nano", "--data", "random", "--steps", "0"}, 2, {"at least 1"}},
    {"VerifyDoesNotFit",
     {"verify", "--model", "gpt2-nano", "--data", "random", "--device-capacity", "1Mi"},
     3,
     {"--device-capacity", "1048576 are allowed"}},
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
    {"PredictedTraceIntoNowhere", random({"--trace-predicted", "nosuch/a.sst"}), 73, {"--trace-predicted", "mkdir -p"}},
    {"LogIntoNowhere", random({"--log", "nosuch/a.jsonl"}), 73, {"--log", "nosuch"}},
    {"TrainBatchAndRanks", random({"--ranks", "2", "--global-batch", "3"}), 78, {"global batch 3", "--global-batch 2"}},
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
    {"WeightsAbsent", random({"--weights", "nosuch.safetensors"}), 66, {"nosuch.safetensors", "No such file"}},
    {"WeightsOfAFolderWithout", random({"--weights", "empty"}), 66, {"empty", "neither model.safetensors nor"}},
    {"WeightsAreText", random({"--weights", "long.txt"}), 65, {"long.txt", "no safetensors file"}},
    {"WeightsOfAnotherModel",
     random({"--weights", TEST_DATA "/data/weights/gpt2_base.safetensors"}),
     78,
     {"parameter 'transformer.wte.weight' of gpt2-nano is ", "tensor 'wte.weight' is 16x8", "config.json"}},
    {"WeightsOfAnotherFamily",
     random({"--weights", TEST_DATA "/data/weights/llama_bf16"}),
     78,
     {"no tensors are for 51 parameters of 52, 'transformer.wpe.weight'", "11 tensors, 'model."}},
    {"SaveIntoNowhere", random({"--save-weights", "nosuch/a"}), 73, {"--save-weights nosuch/a", "mkdir -p"}},
    {"SaveIntoAFile", random({"--save-weights", "long.txt"}), 73, {"--save-weights long.txt", "is a file"}},
    {"DtypeOfNothing", random({"--weights-dtype", "bf16"}), 78, {"--weights-dtype bf16", "--save-weights"}},
    {"SaveOfASharedModel",
     random({"--ranks", "2", "--tensor-parallel", "2", "--save-weights", "a"}),
     78,
     {"--save-weights a", "--tensor-parallel 2", "--tensor-parallel 1"}},
    {"CalibrateIntoNothing", {"calibrate"}, 2, {"OUTPUT is missing", "-o FILE"}},
    {"CalibrateIntoNowhere", {"calibrate", "-o", "nosuch/a.json"}, 73, {"nosuch", "mkdir -p"}},
    {"CalibrateAnotherDevice", {"calibrate", "--device", "cdu", "-o", "a.json"}, 2, {"--device", "cpu"}},
    {"CalibrateNoTime", {"calibrate", "--seconds", "0", "-o", "a.json"}, 2, {"--seconds", "at least 1"}},
    {"CalibrateAsCsv", {"calibrate", "--format", "csv", "-o", "a.json"}, 78, {"--format csv", "--json"}},
    {"TrainPositional", random({"gpt2"}), 2, {"unexpected argument 'gpt2'"}},
};

INSTANTIATE_TEST_SUITE_P(Training, BadInput, testing::ValuesIn(kTraining), name_of);

}  // namespace
}  // namespace shard::test
