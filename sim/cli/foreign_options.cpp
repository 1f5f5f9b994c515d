// The table of other tools' names.
#include "sim/cli/foreign_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace shard::cli {
namespace {

struct Foreign {
  std::string_view ours;
  std::string_view theirs;        ///< names between spaces
  std::string_view same = "";     ///< those of them that mean exactly this
  std::string_view command = "";  ///< the one that has it, where not every command that trains does
};

constexpr auto kForeign = std::to_array<Foreign>({
    {"model",
     " model-name model-name-or-path pretrained-model-name-or-path checkpoint hidden-dim hidden-size model-path "},
    {"data", " dataset data-path data-dir train-file train-data "},
    {"sequence", " seq seq-len seq-length seqlen max-seq-len max-seq-length block-size context-length max-length ",
     " seq-len seq-length seqlen sequence-length "},
    {"micro-batch",
     " batch batch-size mbs micro-batch-size per-device-train-batch-size train-micro-batch-size-per-gpu ",
     " batch-size micro-batch-size per-device-train-batch-size train-micro-batch-size-per-gpu "},
    {"global-batch",
     " gbs global-batch-size train-batch-size gradient-accumulation-steps gradient-accumulation grad-accumulation "
     "grad-accumulation-steps grad-accum accumulation-steps accumulate-grad-batches accumulation accumulate ga ",
     " global-batch-size train-batch-size "},
    {"world-size", " gpus gpu num-gpus n-gpus ngpus devices np nproc nproc-per-node num-processes nprocs procs ",
     " gpus num-gpus n-gpus ngpus num-processes "},
    {"stage", " zero zero-stage zero-optimization ", " zero zero-stage "},
    {"tensor-parallel", " tp tensor-parallel-size tensor-model-parallel-size ",
     " tp tensor-parallel-size tensor-model-parallel-size "},
    {"precision", " dtype torch-dtype mixed-precision amp ", " mixed-precision "},
    {"precision bf16", " bf16 bfloat16 ", " bf16 bfloat16 "},
    {"precision fp16", " fp16 half float16 ", " fp16 half float16 "},
    {"recompute block",
     " gradient-checkpointing activation-checkpointing checkpoint-activations recompute-activations "
     "recompute-granularity recompute-method ",
     " gradient-checkpointing activation-checkpointing "},
    {"optimizer", " optim "},
    {"lr", " learning-rate ", " learning-rate "},
    {"steps", " max-steps num-steps train-iters max-iters iters iterations "},
    {"clip-norm", " clip clip-grad grad-clip max-grad-norm gradient-clipping ",
     " clip-grad grad-clip max-grad-norm gradient-clipping "},
    {"placement host", " cpu-offload offload offload-param zero-offload offload-param-device "},
    {"optimizer-placement host", " offload-optimizer offload-optimizer-device optimizer-offload "},
    {"ds-config", " deepspeed deepspeed-config ds-config-file zero-config ", " deepspeed "},
    {"chunk-size", " chunk chunk-elements "},
    {"min-chunk", " min-chunk-size min-chunk-size-mb min-chunk-size-m ", "", "search"},
    {"search-range", " search-range-mb search-range-m ", "", "search"},
    {"cluster", " hardware machine gpu-type "},
    {"device-capacity", " memory gpu-memory max-memory vram "},
    {"trace", " profile "},
});

/// A word of ours, and theirs for it between spaces, in small letters.
struct SameWord {
  std::string_view ours;
  std::string_view theirs;
};

constexpr auto kSameWords = std::to_array<SameWord>({
    {"device", " cuda gpu "},
    {"host", " cpu "},
    {"cuda", " gpu "},
    {"disk", " nvme "},
    {"static", " const "},
    {"adamw", " hybridadam cpuadam fusedadam deepspeedcpuadam adamw_torch adamw_torch_fused "},
    {"adam", " adam "},
    {"sgd", " sgd "},
    {"fp32", " float32 float no none "},
    {"bf16", " bfloat16 torch.bfloat16 "},
    {"fp16", " float16 half torch.float16 "},
    {"block", " full "},
});

/// What people ask for that has no option here, and what answers instead.
struct NotModelled {
  std::string_view theirs;  ///< names between spaces
  std::string_view answer;
};

constexpr std::string_view kDryRun = "'shardscope dryrun -- python3 train.py' asks your own program";

constexpr auto kNotModelled = std::to_array<NotModelled>({
    {" pipeline-parallel pp pipeline-parallel-size pipeline-model-parallel-size pipeline-stages ",
     "pipeline parallelism is not modelled: "},
    {" context-parallel cp context-parallel-size ulysses ulysses-size ring-attention ",
     "context parallelism is not modelled: "},
    {" expert-parallel ep expert-model-parallel-size expert-parallel-size ", "expert parallelism is not modelled: "},
    {" lora lora-r lora-rank lora-alpha qlora peft peft-config adapter ", "adapters (LoRA) are not modelled: "},
    {" load-in-4bit load-in-8bit quantization quantize bits fp8 ", "quantisation is not modelled: "},
});

std::string between_spaces(std::string_view name) {
  return " " + std::string(name) + " ";
}

}  // namespace

std::string_view own_option(std::string_view foreign) {
  std::string name = between_spaces(foreign);
  std::ranges::replace(name, '_', '-');
  for (const Foreign& each : kForeign)
    if (each.theirs.find(name) != std::string_view::npos) return each.ours;
  return {};
}

std::string_view command_of(std::string_view ours) {
  const auto row = std::ranges::find(kForeign, ours, &Foreign::ours);
  return row == kForeign.end() ? std::string_view() : row->command;
}

std::string_view meaning_of(std::string_view ours) {
  return ours == "global-batch" ? ", sequences of a step: of all ranks and micro-steps" : "";
}

std::string not_modelled(std::string_view foreign) {
  std::string name = between_spaces(foreign);
  std::ranges::replace(name, '_', '-');
  for (const NotModelled& each : kNotModelled)
    if (each.theirs.find(name) != std::string_view::npos) return std::string(each.answer) + std::string(kDryRun);
  return {};
}

std::string_view same_option(std::string_view foreign) {
  std::string name = between_spaces(foreign);
  std::ranges::replace(name, '_', '-');
  for (const Foreign& each : kForeign)
    if (each.same.find(name) != std::string_view::npos) return each.ours;
  return {};
}

std::string own_word(std::string_view text, std::span<const std::string> known) {
  if (std::ranges::find(known, text) != known.end()) return std::string(text);
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::ranges::find(known, small) != known.end()) return small;
  for (const SameWord& each : kSameWords)
    if (each.theirs.find(between_spaces(small)) != std::string_view::npos &&
        std::ranges::find(known, each.ours) != known.end())
      return std::string(each.ours);
  return std::string(text);
}

}  // namespace shard::cli
