// Which rules answer for which framework.
#include "sim/validate/predict.h"

#include <array>
#include <memory>

#include "sim/validate/fsdp.h"
#include "sim/validate/machine.h"
#include "sim/validate/replicated.h"

namespace shard::validate {
namespace {

using MakeRank = std::unique_ptr<Rank> (*)(MemoryStream&, const RunDescription&);

/// Nothing: no rules.
MakeRank rules_of(Framework framework) {
  switch (framework) {
    case Framework::fsdp2:
    case Framework::graph_fsdp:
    case Framework::fsdp1: return make_fsdp_rank;
    case Framework::megatron: return make_megatron_rank;
    case Framework::deepspeed:
    case Framework::colossal: return make_deepspeed_rank;
    case Framework::single: return make_single_rank;
    case Framework::gemini: return nullptr;
  }
  return nullptr;
}

/// The first step, in which moments come to be, and two steady ones.
constexpr int kSteps = 3;

struct Replayed {
  AllocatorStatistics statistics;
  Bytes states;
  bool out_of_memory = false;
};

Replayed replay(MakeRank make, const RunDescription& run, std::optional<Bytes> capacity) {
  MemoryStream memory(capacity);
  const std::unique_ptr<Rank> rank = make(memory, run);
  rank->create();
  for (int i = 0; i < kSteps && !memory.out_of_memory(); ++i) rank->step();
  return {.statistics = memory.statistics(),
          .states = memory.statistics().allocated.current,
          .out_of_memory = memory.out_of_memory()};
}

}  // namespace

Bytes Prediction::of(MemoryKind kind) const {
  switch (kind) {
    case MemoryKind::allocated: return allocated;
    case MemoryKind::active: return active;
    case MemoryKind::reserved: return reserved;
    case MemoryKind::nvidia_smi: return reserved + outside;
    case MemoryKind::states: return states;
    case MemoryKind::not_stated: return allocated;
  }
  return allocated;
}

Result<Prediction> predict(const RunDescription& run) {
  const MakeRank make = rules_of(run.framework);
  if (make == nullptr)
    return Error{.code = Errc::contradiction,
                 .what = std::string("no rules for the memory of ") + to_string(run.framework) + " here",
                 .where = {},
                 .help = "see 'shardscope simulate --like colossalai-gemini'"};
  Prediction prediction;
  prediction.outside = outside_allocator(run);
  std::optional<Bytes> capacity;
  if (run.device_memory) capacity = *run.device_memory - prediction.outside;
  Replayed replayed = replay(make, run, capacity);
  prediction.fits = !replayed.out_of_memory;
  if (replayed.out_of_memory) replayed = replay(make, run, std::nullopt);
  prediction.states = replayed.states;
  prediction.allocated = replayed.statistics.allocated.peak;
  prediction.active = replayed.statistics.active.peak;
  prediction.reserved = replayed.statistics.reserved.peak;
  return prediction;
}

}  // namespace shard::validate
