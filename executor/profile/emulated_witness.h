// The second source of a device's records: the emulated device tells what it did, as CUPTI does of a GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "executor/cuda/api/witness.h"
#include "executor/cuda/emulated/activity.h"
#include "profiler/spool/spool.h"

namespace shard::device_profile {

/// All into one spool, which outlives it. Any thread.
class EmulatedWitness final : public cuda::Witness, public cuda::EmulatedActivity {
 public:
  explicit EmulatedWitness(profiler::Spool& spool) : spool_(spool), lane_(spool) {}

  void begin_op(Rank rank, OpId op) override;
  void end_op() override;
  void host_worked(Rank rank, OpId op, std::int64_t begin_ns, std::int64_t end_ns) override;

  [[nodiscard]] std::uint32_t next_correlation() override { return ++correlations_; }
  [[nodiscard]] std::uint64_t next_node() override { return ++nodes_; }
  void called(std::string_view name, std::uint32_t correlation, std::int64_t begin_ns, std::int64_t end_ns) override;
  void worked(const cuda::EmulatedWork& work) override;
  void memory(const cuda::EmulatedMemory& memory) override;
  void node_made(std::uint64_t node) override;
  void node_cloned(std::uint64_t node, std::uint64_t of) override;
  void stream_waits(std::uint32_t device, std::uint32_t stream, std::uint32_t correlation,
                    std::int64_t time_ns) override;

 private:
  void add(const profiler::Event& event);

  profiler::Spool& spool_;
  std::mutex mutex_;
  profiler::Lane lane_;
  std::atomic<std::uint32_t> correlations_{0};
  std::atomic<std::uint64_t> nodes_{0};
};

}  // namespace shard::device_profile
