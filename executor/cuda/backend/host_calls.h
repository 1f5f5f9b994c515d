// Ops that the host runs in a stream's order, on its own memory or on copies of the device's.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "executor/cpu/host_ops.h"
#include "executor/cpu/memories.h"
#include "executor/cuda/comm/device_room.h"
#include "sim/ir/plan.h"

namespace shard::cuda {

/// Bytes of staging that an op needs where the host runs it: its operands in device memory, each at a multiple of 64.
[[nodiscard]] Bytes staging_bytes(const plan::Plan& plan, const plan::Op& op);
/// How optimizer state is born.
enum class Births : std::uint8_t {
  zero,
  read,  ///< as a run that goes on had it, which the host reads
};
/// The largest of each stream's ops that the host runs on device memory.
[[nodiscard]] std::array<Bytes, kStreamCount> staging_by_stream(const plan::Plan& plan, Births births);
/// Whether an op that is neither computation nor a collective is the host's, wherever its operands are.
[[nodiscard]] bool runs_on_host(const plan::Plan& plan, const plan::Op& op, Births births);

/// Enqueues them and keeps what they are called with; calls run on some thread, one after another of a stream.
class HostCalls {
 public:
  HostCalls(const DeviceRoom& room, const plan::Plan& plan, Rank rank, const cpu::Memories& memories, cpu::HostOps& ops)
      : api_(room.api),
        witness_(room.witness),
        progress_(room.turns.progress()),
        plan_(plan),
        rank_(rank),
        position_(plan::position(plan.topology, rank.value)),
        memories_(memories),
        ops_(ops) {}

  /// Copies what the op reads of the device to `staging`, calls the host, copies back what it wrote. `staging` has
  /// staging_bytes(op) and is used in the stream's order alone. Between begin_op and end_op of the op.
  [[nodiscard]] Result<void> enqueue(Stream stream, const plan::Op& op, std::byte* staging);
  /// The first error of a call since the last question.
  [[nodiscard]] Result<void> take_error();

 private:
  struct Call {
    HostCalls* self = nullptr;
    const plan::Op* op = nullptr;
    std::vector<std::byte*> at{};
  };
  static void run(void* call);
  [[nodiscard]] Result<void> run(const Call& call);
  /// What the call would have written is zero: the device goes on until the error is told, and tokens that were never
  /// loaded would lead it anywhere.
  void clear(const Call& call) const;

  Api& api_;
  Witness* witness_;
  Progress& progress_;
  const plan::Plan& plan_;
  Rank rank_;
  plan::Position position_;
  const cpu::Memories& memories_;
  cpu::HostOps& ops_;
  std::unordered_map<const plan::Op*, Call> calls_;
  std::mutex mutex_;  ///< streams' calls may come on different threads, but HostOps is one thread's at a time
  std::optional<Error> error_;
};

}  // namespace shard::cuda
