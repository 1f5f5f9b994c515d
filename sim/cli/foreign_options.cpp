// The table of other tools' names.
#include "sim/cli/foreign_options.h"

#include <algorithm>
#include <array>
#include <string>

namespace shard::cli {
namespace {

struct Foreign {
  std::string_view ours;
  std::string_view theirs;  ///< names between spaces
};

constexpr auto kForeign = std::to_array<Foreign>({
    {"model", " model-name model-name-or-path pretrained-model-name-or-path checkpoint "},
    {"data", " dataset data-path data-dir train-file train-data "},
    {"sequence", " seq seq-len seq-length seqlen max-seq-len max-seq-length block-size context-length max-length "},
    {"micro-batch",
     " batch batch-size mbs micro-batch-size per-device-train-batch-size train-micro-batch-size-per-gpu "},
    {"global-batch", " gbs global-batch-size train-batch-size gradient-accumulation-steps accumulation accumulate "},
    {"world-size", " gpus gpu num-gpus n-gpus ngpus devices np nproc nproc-per-node num-processes nprocs procs "},
    {"stage", " zero zero-stage zero-optimization "},
    {"tensor-parallel", " tp tensor-parallel-size tensor-model-parallel-size "},
    {"precision", " dtype torch-dtype mixed-precision amp "},
    {"precision bf16", " bf16 bfloat16 "},
    {"precision fp16", " fp16 half float16 "},
    {"recompute block",
     " gradient-checkpointing activation-checkpointing checkpoint-activations recompute-activations "},
    {"optimizer", " optim "},
    {"lr", " learning-rate "},
    {"steps", " max-steps num-steps train-iters max-iters iters iterations "},
    {"clip-norm", " clip clip-grad grad-clip max-grad-norm gradient-clipping "},
    {"placement host", " cpu-offload offload offload-optimizer offload-param zero-offload "},
    {"chunk-size", " chunk chunk-elements "},
    {"cluster", " hardware machine gpu-type "},
    {"device-capacity", " memory gpu-memory device-memory max-memory vram "},
    {"trace", " profile "},
});

}  // namespace

std::string_view own_option(std::string_view foreign) {
  std::string name = " " + std::string(foreign) + " ";
  std::ranges::replace(name, '_', '-');
  for (const Foreign& each : kForeign)
    if (each.theirs.find(name) != std::string_view::npos) return each.ours;
  return {};
}

}  // namespace shard::cli
