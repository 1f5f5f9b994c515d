// Packings by all that they were made from.
#include "sim/compile/packings.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

#include "sim/ir/plan.h"

namespace shard::plan {
namespace {

/// As many as are kept: classes of ranks differ little, and more would only be compared in vain.
constexpr std::size_t kKept = 8;

template <class T>
[[nodiscard]] std::vector<T> copy_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

template <class Entry>
Entry& keep(std::vector<Entry>& entries, Entry entry) {
  if (entries.size() == kKept) entries.erase(entries.begin());
  return entries.emplace_back(std::move(entry));
}

}  // namespace

const std::vector<Bytes>& Packings::pack(const std::vector<Bytes>& items, const std::vector<PackEvent>& events) {
  for (const Packed& known : packed_)
    if (known.items == items && known.events == events) return known.offsets;
  Result<Packing> packing = shard::pack(items, events, {.alignment = kAlignment});
  assert(packing && "lifetimes acquire and release in turn");
  return keep(packed_, {.items = items, .events = events, .offsets = std::move(packing->offsets)}).offsets;
}

const std::optional<std::vector<Bytes>>& Packings::pack_apart(const PackApart& request) {
  for (const Apart& known : apart_)
    if (known.limit == request.limit && std::ranges::equal(known.items, request.items) &&
        std::ranges::equal(known.events, request.events) && std::ranges::equal(known.after, request.after) &&
        std::ranges::equal(known.may_move, request.may_move) && std::ranges::equal(known.offsets, request.offsets))
      return known.moved;
  return keep(apart_, {.items = copy_of(request.items),
                       .events = copy_of(request.events),
                       .after = copy_of(request.after),
                       .may_move = copy_of(request.may_move),
                       .offsets = copy_of(request.offsets),
                       .limit = request.limit,
                       .moved = shard::pack_apart(request)})
      .moved;
}

}  // namespace shard::plan
