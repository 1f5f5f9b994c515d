// Which elements of which parameters an op's bytes are.
#include "executor/cpu/state_ops.h"

#include <algorithm>

#include "executor/cpu/whole_runs.h"

namespace shard::cpu {

template <class Run>
void StateOps::for_each_stretch(std::int32_t f, std::int64_t begin, std::int64_t first, std::int64_t n,
                                const Run& run) const {
  const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(f)];
  const std::int64_t from = begin + first;
  for (const plan::ParamRange& p : plan::param_ranges(flat, Elems{from}, Elems{from + n}))
    for_each_whole_run(plan_, position_, p, [&](std::int64_t own, std::int64_t whole, std::int64_t length) {
      run(p.param, whole, p.offset.count() - from + own - p.first.count(), length);
    });
}

Result<void> StateOps::born(const plan::ZeroState& op, std::size_t operand, std::int64_t offset,
                            std::span<std::byte> into) const {
  using plan::StateContent;
  if (op.content != StateContent::first_moment) return options_.first_state({}, op.content, offset, into);
  std::ranges::fill(into, std::byte{});  // padding of ranks that share a model
  constexpr std::int64_t kSize = sizeof(float);
  Result<void> done;
  const std::int64_t begin = op.first_elem.count() + position_.shard * op.rank_stride_elems.count();
  for_each_stretch(op.flat, begin, offset / kSize, std::ssize(into) / kSize,
                   [&](model::ParamId param, std::int64_t whole, std::int64_t local, std::int64_t n) {
                     if (!done) return;
                     done = options_.first_state(
                         param, operand == 0 ? StateContent::first_moment : StateContent::second_moment, whole,
                         into.subspan(static_cast<std::size_t>(local * kSize), static_cast<std::size_t>(n * kSize)));
                   });
  return done;
}

void StateOps::save(const plan::Save& op, Dtype dtype, std::int64_t offset, std::span<const std::byte> from) const {
  using plan::StateContent;
  if (!options_.save_state) return;
  if (op.content == StateContent::loss_scaler) return options_.save_state({}, op.content, offset, from);
  if (op.content == StateContent::step_counts) {
    for (const plan::Flat::Item& item : plan_.flats[static_cast<std::size_t>(op.flat)].items)
      options_.save_state(
          item.param, op.content, 0,
          from.subspan(sizeof(std::int32_t) * static_cast<std::size_t>(item.param.value), sizeof(std::int32_t)));
    return;
  }
  using Held = plan::Save::Held;
  const plan::Topology& ranks = plan_.topology;
  const std::int64_t holders = op.held == Held::here          ? 1
                               : op.held == Held::by_replicas ? ranks.replicas()
                                                              : ranks.data_parallel();
  const std::int64_t own = op.held == Held::here          ? 0
                           : op.held == Held::by_replicas ? position_.replica
                                                          : position_.data;
  const std::int64_t size = bytes_per_element(dtype);
  const std::int64_t all = op.elems.count();
  const std::int64_t first = std::max(all * own / holders, offset / size);
  const std::int64_t last = std::min(all * (own + 1) / holders, offset / size + std::ssize(from) / size);
  if (first >= last) return;
  const std::int64_t begin = op.first_elem.count() + position_.shard * op.rank_stride_elems.count();
  const std::span<const std::byte> part = from.subspan(static_cast<std::size_t>(first * size - offset));
  for_each_stretch(op.flat, begin, first, last - first,
                   [&](model::ParamId param, std::int64_t whole, std::int64_t local, std::int64_t n) {
                     const model::TensorSplit& split = plan_.model->split;
                     const bool cut = split.degree > 1 && split.parameters[static_cast<std::size_t>(param.value)].cut();
                     // All ranks that share a model have all of what is not cut.
                     if (!cut && position_.tensor != 0) return;
                     options_.save_state(
                         param, op.content, whole,
                         part.subspan(static_cast<std::size_t>(local * size), static_cast<std::size_t>(n * size)));
                   });
}

}  // namespace shard::cpu
