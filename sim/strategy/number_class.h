// Which strategies train to the same bits: what they have in common, and the plainest of them (docs/agreement.md).
#pragma once

#include <span>

#include "sim/strategy/fields.h"
#include "sim/strategy/strategy.h"

namespace shard::plan {

/// What may not differ inside a class: data, arithmetic, what is trained and by which rule.
[[nodiscard]] std::span<const FieldId> class_fields();

/// `s` in the class of `of`: what may not differ inside a class is `of`'s, data, arithmetic, what is trained and by
/// which rule. Sums go in the reproducible order.
[[nodiscard]] Strategy in_number_class(Strategy s, const Strategy& of);

/// Stage 0 of the class of `s`, on its kind of device: all on one rank, or where ranks share a model on as many as
/// share it. A predivided gradient is as large as the number of ranks makes it: there on as many ranks as `s` has.
[[nodiscard]] Strategy unsharded(const Strategy& s);

/// Whether a run by `s` has the bits of unsharded(s): sums in the reproducible order, and numbers of data-parallel
/// ranks and of micro-batches that are powers of two, so that every rank's sum is a whole subtree of the others'.
[[nodiscard]] bool has_bits_of_class(const Strategy& s);

}  // namespace shard::plan
