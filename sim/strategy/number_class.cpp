// Which strategies train to the same bits.
#include "sim/strategy/number_class.h"

#include <array>
#include <bit>
#include <type_traits>

namespace shard::plan {

namespace {

constexpr std::array kClassFields{
    FieldId::micro_batch,         FieldId::global_batch, FieldId::sequence,  FieldId::precision,
    FieldId::fp32_reduce_scatter, FieldId::predivide,    FieldId::optimizer, FieldId::clip_norm,
    FieldId::loss_scaling,        FieldId::freeze,       FieldId::dropout,   FieldId::tensor_parallel,
    FieldId::tensor_layout,
};

void copy(const Field& field, const Strategy& from, Strategy& to) {
  std::visit(
      [&](const auto& place) {
        using Place = std::decay_t<decltype(place)>;
        if constexpr (std::is_same_v<Place, WordMember>)
          place.set(to, place.of(from));
        else if constexpr (std::is_same_v<Place, ShareMember>)
          place.member.in(to) = place.member.of(from);
        else
          place.in(to) = place.of(from);
      },
      field.place);
}

}  // namespace

std::span<const FieldId> class_fields() {
  return kClassFields;
}

Strategy in_number_class(Strategy s, const Strategy& of) {
  for (const FieldId id : kClassFields) copy(field(id), of, s);
  s.reproducible = true;
  return s;
}

Strategy unsharded(const Strategy& s) {
  const Strategy plain{
      .world_size = s.predivide == 1 ? s.tensor_parallel : s.world_size, .threads = s.threads, .device = s.device};
  return in_number_class(plain, s);
}

bool has_bits_of_class(const Strategy& s) {
  const auto is_power_of_two = [](std::int64_t n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); };
  return s.reproducible && is_power_of_two(s.data_parallel()) && is_power_of_two(s.micro_batches());
}

}  // namespace shard::plan
