// A strategy in one line: the table's fields in the order that plans' hashes have known.
#include "sim/strategy/strategy.h"

#include "sim/strategy/fields.h"

namespace shard::plan {
namespace {

constexpr FieldId kOrder[] = {FieldId::stage,
                              FieldId::unit,
                              FieldId::chunk_starts,
                              FieldId::chunk_per_tensor,
                              FieldId::chunk_elems,
                              FieldId::partition,
                              FieldId::world_size,
                              FieldId::micro_batch,
                              FieldId::global_batch,
                              FieldId::sequence,
                              FieldId::recompute,
                              FieldId::optimizer,
                              FieldId::precision,
                              FieldId::prefetch,
                              FieldId::threads,
                              FieldId::reproducible,
                              FieldId::transport,
                              FieldId::device,
                              FieldId::tensor_parallel,
                              FieldId::tensor_layout,
                              FieldId::shard_group,
                              FieldId::fp32_reduce_scatter,
                              FieldId::clip_norm,
                              FieldId::loss_scaling,
                              FieldId::predivide,
                              FieldId::placement,
                              FieldId::param_placement,
                              FieldId::grad_placement,
                              FieldId::optimizer_placement,
                              FieldId::device_capacity,
                              FieldId::margin_ratio,
                              FieldId::non_model_peak,
                              FieldId::freeze,
                              FieldId::dropout,
                              FieldId::ownership,
                              FieldId::distributed,
                              FieldId::keep_gathered,
                              FieldId::reuse_shard,
                              FieldId::bucket_mib,
                              FieldId::evaluates};

void add(std::string& line, std::string_view word) {
  if (word.empty()) return;
  if (!line.empty()) line += ' ';
  line += word;
}

}  // namespace

std::string to_string(const Strategy& s) {
  std::string line;
  for (const FieldId id : kOrder) {
    const Field& f = field(id);
    if (!f.text.shown(s)) continue;
    if (const auto* flag = std::get_if<Member<bool>>(&f.place)) {
      add(line, flag->of(s) ? f.text.word : f.text.otherwise);
      continue;
    }
    add(line, f.text.word);
    add(line, value_text(f, s));
    line += f.text.behind;
  }
  return line;
}

}  // namespace shard::plan
