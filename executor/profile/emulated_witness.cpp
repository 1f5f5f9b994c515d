// One event for each thing told, as the collector makes one of each of CUPTI's records.
#include "executor/profile/emulated_witness.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "profiler/timeline/timeline.h"

namespace shard::device_profile {
namespace {

using profiler::CopyKind;
using profiler::Event;
using profiler::EventKind;
using profiler::kFromHost;
using profiler::PushedOp;

/// What the calling thread's calls belong to.
thread_local std::vector<std::uint64_t> pushed;

std::uint32_t this_thread() {
  thread_local const auto kNumber = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return kNumber;
}

CopyKind copy_kind(const cuda::EmulatedWork& work) {
  if (work.from_host) return work.to_host ? CopyKind::on_host : CopyKind::to_device;
  return work.to_host ? CopyKind::to_host : CopyKind::on_device;
}

}  // namespace

void EmulatedWitness::add(const Event& event) {
  const std::lock_guard lock(mutex_);
  lane_.add(event);
}

void EmulatedWitness::begin_op(Rank rank, OpId op) {
  pushed.push_back(PushedOp{.op = op.valid() ? op.value : -1, .rank = rank.value}.id());
}

void EmulatedWitness::end_op() {
  pushed.pop_back();
}

void EmulatedWitness::host_worked(Rank rank, OpId op, std::int64_t begin_ns, std::int64_t end_ns) {
  add({.kind = EventKind::range,
       .detail = static_cast<std::uint8_t>(profiler::RangeOf::op),
       .flags = kFromHost,
       .name = spool_.name("host call"),
       .begin_ns = begin_ns,
       .end_ns = end_ns,
       .id = PushedOp{.op = op.value, .rank = rank.value}.id(),
       .thread = this_thread()});
}

void EmulatedWitness::called(std::string_view name, std::uint32_t correlation, std::int64_t begin_ns,
                             std::int64_t end_ns) {
  add({.kind = EventKind::call,
       .flags = kFromHost,
       .name = spool_.name(name),
       .begin_ns = begin_ns,
       .end_ns = end_ns,
       .correlation = correlation,
       .thread = this_thread()});
  if (!pushed.empty())
    add({.kind = EventKind::external,
         .detail = static_cast<std::uint8_t>(profiler::Pushed::ours),
         .id = pushed.back(),
         .correlation = correlation});
}

void EmulatedWitness::worked(const cuda::EmulatedWork& work) {
  Event event{.flags = kFromHost,
              .begin_ns = work.begin_ns,
              .end_ns = work.end_ns,
              .bytes = work.bytes,
              .correlation = work.correlation,
              .device = work.device,
              .stream = work.stream,
              .extra = work.node};
  switch (work.kind) {
    case cuda::EmulatedWork::Kind::none: return;
    case cuda::EmulatedWork::Kind::kernel:
      event.kind = EventKind::kernel;
      event.name = spool_.name(work.name);
      break;
    case cuda::EmulatedWork::Kind::copy:
      event.kind = EventKind::copy;
      event.detail = static_cast<std::uint8_t>(copy_kind(work));
      break;
    case cuda::EmulatedWork::Kind::fill: event.kind = EventKind::fill; break;
  }
  add(event);
}

void EmulatedWitness::memory(const cuda::EmulatedMemory& memory) {
  const auto place = memory.pinned ? profiler::MemoryPlace::pinned : profiler::MemoryPlace::device;
  add({.kind = memory.acquired ? EventKind::acquired : EventKind::released,
       .detail = static_cast<std::uint8_t>(place),
       .flags = kFromHost,
       .begin_ns = memory.time_ns,
       .id = memory.address,
       .bytes = memory.bytes,
       .correlation = memory.correlation,
       .device = memory.device});
}

void EmulatedWitness::node_made(std::uint64_t node) {
  if (!pushed.empty()) add({.kind = EventKind::node_made, .id = node, .extra = pushed.back()});
}

void EmulatedWitness::node_cloned(std::uint64_t node, std::uint64_t of) {
  add({.kind = EventKind::node_cloned, .id = node, .extra = of});
}

void EmulatedWitness::stream_waits(std::uint32_t device, std::uint32_t stream, std::uint32_t correlation,
                                   std::int64_t time_ns) {
  add({.kind = EventKind::wait,
       .detail = static_cast<std::uint8_t>(profiler::WaitKind::stream_for_event),
       .flags = kFromHost,
       .begin_ns = time_ns,
       .end_ns = time_ns,
       .correlation = correlation,
       .device = device,
       .stream = stream});
}

}  // namespace shard::device_profile
