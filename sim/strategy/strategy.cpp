// A strategy in one line.
#include "sim/strategy/strategy.h"

#include <charconv>

namespace shard::plan {
namespace {

/// The shortest digits that give the same number back.
[[nodiscard]] std::string shortest(float number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

}  // namespace

std::string to_string(const Strategy& s) {
  std::string out = "stage " + std::to_string(s.stage) + " unit " + to_string(s.unit);
  if (s.unit == UnitKind::chunk && s.has_variable_chunks()) {
    const char* before = " from parameters ";
    for (const std::int32_t start : s.chunk_starts) {
      out += before + std::to_string(start);
      before = ",";
    }
  } else if (s.unit == UnitKind::chunk) {
    out += s.chunk_per_tensor ? " per tensor" : " of " + std::to_string(s.chunk_elems.count()) + " elements";
  }
  out += std::string(" partition ") + to_string(s.partition) + " world " + std::to_string(s.world_size) +
         " micro_batch " + std::to_string(s.micro_batch) + " global_batch " + std::to_string(s.global_batch) +
         " sequence " + std::to_string(s.sequence) + " recompute " + to_string(s.recompute) + " optimizer " +
         to_string(s.optimizer) + " precision " + to_string(s.precision) + " prefetch " + std::to_string(s.prefetch) +
         " threads " + std::to_string(s.threads) + (s.reproducible ? " reproducible" : " fast_sums") + " transport " +
         to_string(s.transport);
  if (s.tensor_parallel > 1)
    out += " tensor_parallel " + std::to_string(s.tensor_parallel) + ' ' + model::to_string(s.tensor_layout);
  if (s.shard_group > 0) out += " shard_group " + std::to_string(s.shard_group);
  if (s.fp32_reduce_scatter) out += " fp32_reduce_scatter";
  if (s.clip_norm) out += " clip_norm";
  if (s.loss_scaling) out += " loss_scaling";
  if (s.predivide != 1.0f) out += " predivide " + shortest(s.predivide);
  if (!s.placement.all_on_device()) out += " placement " + to_string(s.placement);
  for (std::size_t i = 0; i < s.freeze.size(); ++i) out += (i == 0 ? " freeze " : ",") + s.freeze[i];
  if (s.dropout > 0) out += " dropout " + shortest(s.dropout);
  if (s.ownership == Ownership::rank) out += " owned_by rank";
  if (!s.distributed) out += " not_distributed";
  if (s.keep_gathered) out += " keep_gathered";
  if (s.reuse_shard) out += " reuse_shard";
  if (s.bucket_mib > 0) out += " bucket_mib " + std::to_string(s.bucket_mib);
  return out;
}

}  // namespace shard::plan
