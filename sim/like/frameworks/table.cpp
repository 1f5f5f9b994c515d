// The table of frameworks.
#include "sim/like/frameworks/framework.h"

namespace shard::like {

namespace eager {

// Makers of what is around a program, each in the file of its rules.
std::unique_ptr<Sharding> ddp(Runtime& runtime, const ShardingOptions& options);
std::unique_ptr<Sharding> fsdp1(Runtime& runtime, const ShardingOptions& options);
std::unique_ptr<Sharding> fsdp2(Runtime& runtime, const ShardingOptions& options);
std::unique_ptr<Sharding> deepspeed(Runtime& runtime, const ShardingOptions& options);
std::unique_ptr<Sharding> megatron_optimizer(Runtime& runtime, const ShardingOptions& options);

}  // namespace eager

namespace {

using Options = std::vector<std::string_view>;

/// What the caching allocator of PyTorch 2 is told, and the snapshot that its replay writes.
const Options kAllocator{"allocator-conf", "memory-fraction", "trace"};
/// How a loop of eager PyTorch is written.
const Options kWithinLoop{"attention", "transformers", "use-cache", "logits", "optimizer-implementation",
                          "dropout",   "clip-norm"};
/// And where the loop itself empties gradients.
const Options kLoop = [] {
  Options all = kWithinLoop;
  all.emplace_back("zero-grad");
  return all;
}();

/// FSDP's own. Units are blocks, and one is gathered ahead: what says otherwise is refused with its values.
const Options kFsdp{"masters", "reduce-dtype", "keep-gathered", "unit", "prefetch", "shard-group"};
/// What rests on the host.
const Options kPlacement{"placement", "param-placement", "grad-placement", "optimizer-placement", "host-capacity"};

/// Keys of its zero_optimization.
const Options kDeepSpeed{"reduce-bucket-size",
                         "stage3-prefetch-bucket-size",
                         "stage3-param-persistence-threshold",
                         "stage3-max-live-parameters",
                         "stage3-max-reuse-distance",
                         "sub-group-size",
                         "zero-init"};

/// Releases of Colossal-AI whose chunks, hooks and policies are one text: `git diff` between the tags is empty.
constexpr std::string_view kSplitReleases[] = {"0.4.7", "0.4.8", "0.4.9", "0.5.0", "0.5.1"};
/// Of PyTorch, newest first: those that dry runs were made of, but the newest.
const std::span<const eager::Version> kOlderPyTorch = eager::library_row(eager::Library::pytorch).compared.subspan(1);
const std::span<const eager::Version> kOlderDeepSpeed =
    eager::library_row(eager::Library::deepspeed).compared.subspan(1);

constexpr std::string_view kWholeReleases[] = {"0.1.9"};

Options joined(std::initializer_list<Options> parts) {
  Options all;
  for (const Options& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

std::span<const Framework> frameworks() {
  static const Options kGemini{
      "parameters", "shard-param-frac", "offload-optim-frac", "offload-param-frac", "rank", "chunk-size", "steps"};
  static const std::vector<Framework> kFrameworks{
      {.name = "pytorch",
       .version = "2.11",
       .older = kOlderPyTorch,
       .help = "a transformer on one GPU",
       .options = joined({kLoop, kAllocator, {"model-code", "autocast"}})},
      {.name = "pytorch",
       .version = "1.8",
       .help = "an mlp, stages 0 and 1",
       .teller = Teller::pytorch_1_8,
       .options = {"partition"}},
      {.name = "ddp",
       .version = "2.11",
       .older = kOlderPyTorch,
       .help = "DistributedDataParallel around a transformer, stage 0",
       .sharding = eager::Framework::ddp,
       .make = eager::ddp,
       .options = joined({kLoop, kAllocator, {"model-code", "autocast"}})},
      {.name = "fsdp2",
       .version = "2.11",
       .older = kOlderPyTorch,
       .help = "fully_shard of each block and of the model, stages 3 and 2",
       .sharding = eager::Framework::fsdp2,
       .make = eager::fsdp2,
       .usual_stage = 3,
       .options = joined({kLoop, kAllocator, kFsdp, kPlacement, {"model-code", "pin-memory", "fsdp-units"}})},
      {.name = "fsdp1",
       .version = "2.11",
       .older = kOlderPyTorch,
       .help = "FullyShardedDataParallel, blocks wrapped, stages 3 and 2",
       .sharding = eager::Framework::fsdp1,
       .make = eager::fsdp1,
       .usual_stage = 3,
       .options = joined({kLoop, kAllocator, kFsdp, kPlacement, {"use-orig-params"}})},
      {.name = "deepspeed",
       .version = "0.19",
       .older = kOlderDeepSpeed,
       .library = eager::Library::deepspeed,
       .help = "ZeRO stages 1 to 3",
       .sharding = eager::Framework::deepspeed,
       .make = eager::deepspeed,
       .usual_stage = 2,
       .options = joined({kWithinLoop, kAllocator, kDeepSpeed, kPlacement, {"pin-memory"}})},
      {.name = "megatron",
       .version = "0.16",
       .help =
           "a gpt2 by its local layers, a llama by Transformer Engine's, in bf16, stage 1: the distributed optimizer",
       .sharding = eager::Framework::megatron,
       .make = eager::megatron_optimizer,
       .options = joined({kAllocator, {"dropout", "tensor-parallel", "sequence-parallel"}})},
      {.name = "colossalai-gemini",
       .version = "0.5.1",
       .releases = kSplitReleases,
       .help = "fp16 in chunks, each cut over ranks",
       .teller = Teller::gemini,
       .gemini = GeminiRules::split,
       .usual_stage = 3,
       .options = kGemini},
      {.name = "colossalai-gemini",
       .version = "0.1.9",
       .releases = kWholeReleases,
       .help = "fp16 in chunks, each whole on one rank",
       .teller = Teller::gemini,
       .gemini = GeminiRules::whole,
       .usual_stage = 3,
       .options = kGemini},
  };
  return kFrameworks;
}

}  // namespace shard::like
