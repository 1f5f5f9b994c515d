// Faults and memory of the emulated device.
#include "executor/cuda/emulated/device.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace shard::cuda {
namespace emulated {

Device::Device(const EmulatedOptions& options, std::unique_ptr<DeviceMemory> memory)
    : options_(options),
      facts_{"emulated", options.compute_capability, 1, 0, options.capacity, 0, true},
      memory_(std::move(memory)),
      scheduler_(options.seed, options.as_enqueued, options.activity),
      blocks_(options.seed ^ 0xB10C) {}

bool Device::hangs_now(std::string_view call) {
  const std::optional<PlantedFault>& fault = options_.fault;
  if (!fault || fault->call != call || ++occurrences_ != fault->occurrence) return false;
  if (fault->kind == PlantedFault::Kind::hang) return true;
  fail({Errc::unavailable,
        fault->call + "() fails on the emulated device, as was planted at its call number " +
            std::to_string(fault->occurrence),
        "", ""});
  return false;
}

std::optional<Error> Device::enter(std::string_view call) {
  if (!fault_ && hangs_now(call)) stopped_ = true;
  return fault_;
}

std::optional<Error> Device::enter(std::string_view call, DeviceStream& stream) {
  if (!fault_ && hangs_now(call)) {
    Step step;
    step.op = owner(stream);
    step.hangs = true;
    static_cast<void>(enqueue(stream, std::move(step)));
  }
  return fault_;
}

Error Device::fail(Error error) {
  if (!fault_) fault_ = std::move(error);
  return *fault_;
}

Error Device::misuse(const DeviceStream& stream, const std::string& why) {
  return fail({Errc::internal, why, owner(stream)->label, ""});
}

Result<MemoryInfo> Device::memory_info() {
  if (auto error = enter("memory_info")) return *error;
  return MemoryInfo{memory_->capacity() - memory_->used(), memory_->capacity()};
}

Result<std::byte*> Device::allocate(Bytes bytes) {
  if (auto error = enter("allocate")) return *error;
  const ToldCall call(options_.activity, "cudaMalloc");
  return told_allocation(memory_->allocate(bytes), bytes, false, call);
}

Result<std::byte*> Device::allocate_pinned(Bytes bytes) {
  if (auto error = enter("allocate_pinned")) return *error;
  const ToldCall call(options_.activity, "cudaHostAlloc");
  return told_allocation(memory_->allocate_pinned(bytes), bytes, true, call);
}

Result<std::byte*> Device::told_allocation(const Result<std::byte*>& memory, Bytes bytes, bool pinned,
                                           const ToldCall& call) const {
  if (memory && options_.activity != nullptr)
    options_.activity->memory({.acquired = true,
                               .pinned = pinned,
                               .device = options_.number,
                               .address = reinterpret_cast<std::uint64_t>(*memory),
                               .bytes = bytes.count(),
                               .correlation = call.number(),
                               .time_ns = EmulatedActivity::now_ns()});
  return memory;
}

void Device::abandon() {
  abandoned_ = true;
  fail({Errc::unavailable, "the device hangs, and was given up", "", ""});
}

void Device::run_all(const char* call) {
  while (!fault_ && !scheduler_.is_idle()) {
    const Moment never;
    const bool hangs = stopped_ || scheduler_.hangs();
    if (!hangs) {
      if (auto error = scheduler_.run(never, options_.work_per_question)) fail(std::move(*error));
      std::this_thread::yield();  // other devices' threads, which transfers may wait for
      continue;
    }
    std::fprintf(stderr, "%s() waits for work of the device that never ends\n", call);
    std::abort();
  }
}

void Device::give_back(std::byte* memory, bool pinned) {
  if (abandoned_) return;
  run_all(pinned ? "cudaFreeHost" : "cudaFree");
  const ToldCall call(options_.activity, pinned ? "cudaFreeHost" : "cudaFree");
  const auto block = memory_->free(memory, pinned);
  if (block && options_.activity != nullptr)
    options_.activity->memory({.acquired = false,
                               .pinned = pinned,
                               .device = options_.number,
                               .address = reinterpret_cast<std::uint64_t>(memory),
                               .bytes = block->bytes,
                               .correlation = call.number(),
                               .time_ns = EmulatedActivity::now_ns()});
  if (!block) {
    fail(block.error());
  } else if (options_.check_order) {
    if (const auto conflict = order_.freed(block->begin, block->bytes)) fail(conflict_error(*conflict));
  }
}
void Device::free(std::byte* memory) {
  give_back(memory, false);
}
void Device::free_pinned(std::byte* memory) {
  give_back(memory, true);
}

std::string Device::place_of(const std::byte* address) const {
  const DeviceMemory::Block* const block = memory_->find(address);
  if (block == nullptr) return memory_->is_device(address) ? "of freed memory" : "of the host";
  return "at offset " + std::to_string(address - block->begin) + " of " + std::to_string(block->bytes) +
         (block->pinned ? " bytes of pinned memory" : " bytes of the device");
}

Error Device::conflict_error(const Conflict& conflict) const {
  return to_error(conflict, place_of(conflict.access.begin));
}

Result<Device::Kind> Device::kind_of(const DeviceStream& stream, const void* memory, std::int64_t bytes,
                                     const char* what) {
  const auto* const begin = static_cast<const std::byte*>(memory);
  const DeviceMemory::Block* const block = memory_->find(begin);
  if (block != nullptr && !block->holds(begin, bytes))
    return misuse(stream, std::string(what) + ", " + std::to_string(bytes) + " bytes " + place_of(begin) +
                              ", reaches beyond them");
  if (block != nullptr) return block->pinned ? Kind::pinned : Kind::device;
  if (memory_->is_device(begin) || begin == nullptr)
    return misuse(stream, std::string(what) + " is of the device, and not allocated");
  return Kind::pageable;
}

std::optional<std::string> Device::undeclared(const DeviceStream& stream, const std::byte* begin, std::int64_t bytes,
                                              bool writes) const {
  if (stream.op == nullptr || stream.op->ranges.empty()) return std::nullopt;
  for (const Range& range : stream.op->ranges) {
    if (writes && range.access == model::Access::read) continue;
    if (begin >= range.begin && begin + bytes <= range.begin + range.bytes) return std::nullopt;
  }
  return std::to_string(bytes) + " bytes " + place_of(begin) + (writes ? " are written" : " are read") +
         ", which the op did not declare";
}

std::optional<Error> Device::with_ranges_open(const OpRecord& op, const std::function<std::optional<Error>()>& run) {
  if (op.ranges.empty()) memory_->open_all();
  for (const Range& range : op.ranges) memory_->open(range.begin, range.bytes);
  auto error = run();
  if (op.ranges.empty()) memory_->close_all();
  for (const Range& range : op.ranges) memory_->close(range.begin, range.bytes);
  return error;
}

}  // namespace emulated

Result<std::unique_ptr<Api>> make_emulated(const EmulatedOptions& options) {
  auto memory = emulated::DeviceMemory::make(options.capacity);
  if (!memory) return memory.error();
  return std::unique_ptr<Api>(std::make_unique<emulated::Device>(options, std::move(*memory)));
}

std::span<const std::string_view> emulated_calls() {
  static constexpr std::array<std::string_view, 20> kCalls{
      "memory_info", "allocate",     "allocate_pinned", "make_stream",     "make_event",
      "record",      "wait",         "is_done",         "seconds_between", "copy",
      "fill",        "call_host",    "begin_op",        "end_op",          "begin_capture",
      "end_capture", "launch_graph", "prepare_product", "multiply",        "launch"};
  return kCalls;
}

}  // namespace shard::cuda
