// A spool in a temporary folder, filled by one of two witnesses.
#include "executor/profile/device_recording.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "executor/profile/emulated_witness.h"
#include "executor/profile/gpu_witness.h"
#include "executor/rank/observer.h"
#include "profiler/spool/read_spool.h"

namespace shard::device_profile {
namespace {

std::string spool_path(const Scratch& folder) {
  return folder.path() + "/events";
}

}  // namespace

DeviceRecording::DeviceRecording() = default;

DeviceRecording::~DeviceRecording() {
  phases_.reset();
  // CUPTI delivers until the process is gone, into this spool: its file is removed, its memory stays.
  if (gpus_ != nullptr) {
    static_cast<void>(witness_.release());
    static_cast<void>(spool_.release());
  }
}

std::unique_ptr<DeviceRecording> DeviceRecording::start(bool emulated) {
  std::unique_ptr<DeviceRecording> recording(new DeviceRecording);
  if (const Result<void> begun = recording->begin(emulated); !begun) {
    const Error& error = begun.error();
    recording->why_not_ = error.what + (error.help.empty() ? "" : "; " + error.help);
  }
  return recording;
}

Result<void> DeviceRecording::begin(bool emulated) {
  Result<Scratch> folder = Scratch::make_temporary("the recording of the device");
  if (!folder) return folder.error();
  folder_.emplace(std::move(*folder));
  Result<std::unique_ptr<profiler::Spool>> spool = profiler::Spool::create(spool_path(*folder_));
  if (!spool) return spool.error();
  spool_ = std::move(*spool);
  if (emulated) {
    auto witness = std::make_unique<EmulatedWitness>(*spool_);
    activity_ = witness.get();
    witness_ = std::move(witness);
  } else {
    Result<std::unique_ptr<GpuWitness>> witness = make_gpu_witness(*spool_);
    if (!witness) {
      // What CUPTI was told of before it refused it may still call.
      static_cast<void>(spool_.release());
      return witness.error();
    }
    gpus_ = witness->get();
    witness_ = std::move(*witness);
  }
  phases_ = std::make_unique<profiler::Lane>(*spool_);
  return {};
}

void DeviceRecording::begin_phase(Rank rank, Phase phase, std::int64_t step) {
  if (!is_recording()) return;
  if (gpus_ != nullptr) gpus_->look_at_clocks();
  const std::lock_guard lock(mutex_);
  running_[rank] = {.at = {.phase = phase, .step = static_cast<std::int32_t>(step)}, .begin_ns = executor::now_ns()};
}

void DeviceRecording::end_phase(Rank rank) {
  if (!is_recording()) return;
  if (gpus_ != nullptr) gpus_->look_at_clocks();
  const std::lock_guard lock(mutex_);
  const Running& running = running_[rank];
  phases_->add({.kind = profiler::EventKind::range,
                .detail = static_cast<std::uint8_t>(profiler::RangeOf::phase),
                .flags = profiler::kFromHost,
                .name = spool_->name(to_string(running.at.phase)),
                .begin_ns = running.begin_ns,
                .end_ns = executor::now_ns(),
                .id = profiler::PushedOp{.op = -1, .rank = rank.value}.id(),
                .thread = static_cast<std::uint32_t>(::syscall(SYS_gettid)),
                .extra = running.at.packed()});
}

Rank DeviceRecording::first_rank() const {
  const std::lock_guard lock(mutex_);
  return running_.empty() ? Rank{} : running_.begin()->first;
}

Result<profiler::Timeline> DeviceRecording::read() {
  if (gpus_ != nullptr) gpus_->finish();
  Result<profiler::SpoolContent> content = profiler::read_spool(spool_path(*folder_));
  if (!content) return content.error();
  const std::vector<profiler::Process> processes{{.content = std::move(*content), .rank = first_rank()}};
  return profiler::timeline_of(processes);
}

}  // namespace shard::device_profile
