// What ranks on one host share: a head and rings of call slots per rank, beside the arenas. All zero is the start
// state.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "executor/comm/communicator.h"
#include "traces/base/ids.h"

namespace shard {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int32_t>::is_always_lock_free,
              "flags in memory shared between processes must not need a lock");

/// Who a rank is and how it ended. Lives in shared memory from creation on.
struct alignas(64) RankHead {
  enum State : std::int32_t { absent = 0, present = 1, left = 2 };
  std::atomic<std::int32_t> state;
  std::atomic<std::int32_t> process;  ///< process id, 0 where ranks are threads
  /// Rank 0's head only: 1 + the first rank that aborted. Its `reason` is complete once this is seen.
  std::atomic<std::int32_t> aborted_by;
  char reason[1012];  ///< of this rank's own abort, zero-terminated
};

/// One call of one rank. The owner writes the description, then `arrived`; the peers read it until they set their
/// own `done`. All three count the calls of one group: a flag holds for call s when it is at least s.
struct alignas(64) CallSlot {
  std::atomic<std::uint64_t> arrived;  ///< description and inputs are readable
  std::atomic<std::uint64_t> reduced;  ///< all_reduce: the own part of `full` is the sum
  std::atomic<std::uint64_t> done;     ///< reads no peer's memory for this call any more
  OpId op;
  std::int32_t root;
  std::int32_t segments;
  Collective kind;
  Dtype dtype;
  // CommSegment[limits.segments] follow.
};

/// The slots in which one rank keeps its calls of one group.
class SlotRing {
 public:
  SlotRing() = default;
  SlotRing(std::byte* memory, CommLimits limits) : memory_(memory), limits_(limits) {}

  [[nodiscard]] static constexpr std::size_t bytes(CommLimits limits) {
    return stride(limits) * static_cast<std::size_t>(limits.in_flight);
  }
  explicit operator bool() const { return memory_ != nullptr; }
  [[nodiscard]] CallSlot& slot(std::uint64_t sequence) const {
    return *reinterpret_cast<CallSlot*>(at(sequence));  // implicit-lifetime type in zeroed shared memory
  }
  [[nodiscard]] CommSegment* segments(std::uint64_t sequence) const {
    return reinterpret_cast<CommSegment*>(at(sequence) + sizeof(CallSlot));
  }

 private:
  [[nodiscard]] static constexpr std::size_t stride(CommLimits limits) {
    const std::size_t bytes = sizeof(CallSlot) + sizeof(CommSegment) * static_cast<std::size_t>(limits.segments);
    return (bytes + 63) / 64 * 64;
  }
  [[nodiscard]] std::byte* at(std::uint64_t sequence) const {
    return memory_ + stride(limits_) * (sequence % static_cast<std::uint64_t>(limits_.in_flight));
  }

  std::byte* memory_ = nullptr;
  CommLimits limits_;
};

/// The rings of one rank, in memory that all ranks see: one per group that it calls with, in the order of their first
/// calls, so a peer finds the ring of a group by its key.
class SlotRings {
 public:
  SlotRings() = default;
  SlotRings(std::byte* memory, CommLimits limits) : memory_(memory), limits_(limits) {}

  /// Bytes of all rings; the memory must be zero and aligned to 64.
  [[nodiscard]] static constexpr std::size_t bytes(CommLimits limits) {
    return stride(limits) * static_cast<std::size_t>(limits.groups);
  }
  /// To be called by the owner only, once per ring: it serves the calls of the group with `key` from now on.
  SlotRing open(int ring, std::uint64_t key) const {
    key_at(ring).store(key, std::memory_order_release);
    return ring_at(ring);
  }
  /// The ring for `key`, none as long as the owner has not opened it.
  [[nodiscard]] SlotRing find(std::uint64_t key) const {
    for (int ring = 0; ring < limits_.groups; ++ring) {
      const std::uint64_t theirs = key_at(ring).load(std::memory_order_acquire);
      if (theirs == key) return ring_at(ring);
      if (theirs == 0) break;
    }
    return {};
  }

 private:
  static constexpr std::size_t kHead = 64;  ///< the key, on a cache line of its own
  [[nodiscard]] static constexpr std::size_t stride(CommLimits limits) { return kHead + SlotRing::bytes(limits); }
  [[nodiscard]] std::byte* at(int ring) const { return memory_ + stride(limits_) * static_cast<std::size_t>(ring); }
  [[nodiscard]] std::atomic<std::uint64_t>& key_at(int ring) const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(at(ring));
  }
  [[nodiscard]] SlotRing ring_at(int ring) const { return {at(ring) + kHead, limits_}; }

  std::byte* memory_ = nullptr;
  CommLimits limits_;
};

/// One process's or thread's view of the region; index is the rank.
struct SharedRegion {
  std::vector<RankHead*> heads;
  std::vector<SlotRings> rings;    ///< empty until arenas exist
  std::vector<std::byte*> arenas;  ///< empty until arenas exist
};

/// Records this rank's abort; the first rank's reason stays.
void publish_abort(const SharedRegion& region, Rank rank, std::string_view reason);

}  // namespace shard
