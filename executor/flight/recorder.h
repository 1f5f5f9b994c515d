// A rank's flight recorder: its last events, in memory that outlives it.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/flight/layout.h"
#include "sim/ir/plan.h"
#include "traces/base/result.h"

namespace shard::flight {

/// What the header says.
struct Whose {
  Rank rank{0};
  std::int32_t world = 1;
  std::string plan_hash{};
};

/// An event is eight stores into a mapped file, whose pages are the kernel's: however the process ends, they are there.
/// No system call, no lock. One thread writes; others may take a snapshot().
class Recorder {
 public:
  /// Maps the file behind `descriptor`, which is given its size; not owned, not needed afterwards. Errc::unavailable.
  [[nodiscard]] static Result<std::unique_ptr<Recorder>> map(int descriptor, const Whose& whose,
                                                             const plan::Plan& plan);
  /// In memory of this process alone, for what it can say of itself.
  [[nodiscard]] static Result<std::unique_ptr<Recorder>> in_memory(const Whose& whose, const plan::Plan& plan);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  /// What follows belongs to it.
  void begin(Phase phase, std::int64_t step, std::int64_t now_ns) {
    phase_ = phase;
    step_ = static_cast<std::int32_t>(step);
    add({.time_ns = now_ns, .kind = EventKind::phase_begun});
  }
  void end(std::int64_t now_ns) { add({.time_ns = now_ns, .kind = EventKind::phase_ended}); }
  void begun(const plan::Op& op, std::int64_t now_ns) { add(of(op, EventKind::op_begun, now_ns)); }
  void ended(const plan::Op& op, std::int64_t now_ns) { add(of(op, EventKind::op_ended, now_ns)); }
  /// Collectives land in the order in which they were started.
  void started(const plan::Op& op, const plan::Communicate& call, Bytes bytes, std::int64_t now_ns) {
    add(of(op, call, EventKind::started, ++started_, bytes, now_ns));
  }
  /// `op`: the oldest in flight.
  void waiting(const plan::Op& op, const plan::Communicate& call, std::int64_t now_ns) {
    add(of(op, call, EventKind::waiting, landed_ + 1, Bytes{0}, now_ns));
  }
  void landed(const plan::Op& op, const plan::Communicate& call, std::int64_t now_ns) {
    add(of(op, call, EventKind::landed, ++landed_, Bytes{0}, now_ns));
  }
  /// Its phase and step are set here.
  void add(Event event) {
    event.step = step_;
    event.phase = phase_;
    auto words = std::bit_cast<Words>(Record{.number = ++number_, .event = event});
    words.back() = check_of(words);
    std::uint64_t* const at = ring_ + (number_ - 1) % kRingRecords * kRecordWords;
    for (std::size_t i = 0; i < kRecordWords; ++i) std::atomic_ref(at[i]).store(words[i], std::memory_order_relaxed);
  }

  /// All of it, as a file would have it; any thread.
  [[nodiscard]] std::vector<std::byte> snapshot() const;

 private:
  Recorder(void* mapping, std::size_t bytes);
  [[nodiscard]] static Event of(const plan::Op& op, EventKind kind, std::int64_t now_ns) {
    return {.time_ns = now_ns, .op = op.id.value, .block = op.block, .kind = kind, .part = op.part};
  }
  [[nodiscard]] static Event of(const plan::Op& op, const plan::Communicate& call, EventKind kind, std::uint32_t number,
                                Bytes bytes, std::int64_t now_ns) {
    return {.time_ns = now_ns,
            .bytes = bytes.count(),
            .op = op.id.value,
            .call = number,
            .unit = call.unit.value,
            .block = op.block,
            .kind = kind,
            .part = op.part,
            .collective = call.kind,
            .group = static_cast<std::uint8_t>(call.group)};
  }
  [[nodiscard]] static Result<std::unique_ptr<Recorder>> make(int descriptor, const Whose& whose,
                                                              const plan::Plan& plan);

  std::byte* mapping_;
  std::size_t bytes_;
  std::uint64_t* ring_;
  std::uint64_t number_ = 0;
  std::uint32_t started_ = 0;
  std::uint32_t landed_ = 0;
  Phase phase_ = Phase::creation;
  std::int32_t step_ = 0;
};

}  // namespace shard::flight
