// What the devices of this process do in a training run, recorded beside it: started before the first, read behind the
// last of its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "executor/cuda/api/witness.h"
#include "executor/cuda/emulated/activity.h"
#include "profiler/spool/spool.h"
#include "profiler/timeline/timeline.h"
#include "traces/base/scratch.h"

namespace shard::device_profile {

class GpuWitness;

/// One per process. Where nothing can be recorded the run goes on without, and why_not() says what is missing.
class DeviceRecording {
 public:
  /// Before any device is opened. `emulated`: the devices tell it themselves (activity()), else CUPTI does.
  [[nodiscard]] static std::unique_ptr<DeviceRecording> start(bool emulated);
  DeviceRecording(const DeviceRecording&) = delete;
  DeviceRecording& operator=(const DeviceRecording&) = delete;
  ~DeviceRecording();

  [[nodiscard]] bool is_recording() const { return witness_ != nullptr; }
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// Null where nothing is recorded.
  [[nodiscard]] cuda::Witness* witness() { return witness_.get(); }
  /// For emulated devices, which outlives them; null for others.
  [[nodiscard]] cuda::EmulatedActivity* activity() { return activity_; }

  /// A rank's phases, each on the rank's thread. Work belongs to the phase in which it was enqueued.
  void begin_phase(Rank rank, Phase phase, std::int64_t step);
  void end_phase(Rank rank);
  /// The lowest that has begun a phase.
  [[nodiscard]] Rank first_rank() const;

  /// All that was recorded, once, when every rank of this process has ended. Errors: as read_spool().
  [[nodiscard]] Result<profiler::Timeline> read();

 private:
  struct Running {
    profiler::PhaseStep at{};
    std::int64_t begin_ns = 0;
  };
  DeviceRecording();
  [[nodiscard]] Result<void> begin(bool emulated);

  std::optional<Scratch> folder_;
  std::unique_ptr<profiler::Spool> spool_;
  std::unique_ptr<cuda::Witness> witness_;
  cuda::EmulatedActivity* activity_ = nullptr;
  GpuWitness* gpus_ = nullptr;
  std::string why_not_;
  mutable std::mutex mutex_;
  std::unique_ptr<profiler::Lane> phases_;
  std::map<Rank, Running> running_;
};

}  // namespace shard::device_profile
