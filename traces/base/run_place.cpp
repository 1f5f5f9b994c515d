// Part and step share a word, so that nobody sees the step of another part.
#include "traces/base/run_place.h"

#include <atomic>

namespace shard {
namespace {

constexpr int kStepBits = 56;
std::atomic<std::uint64_t> current{0};

std::atomic<const char*> call{nullptr};
std::atomic<std::chrono::steady_clock::time_point> call_since{};

}  // namespace

std::string to_string(RunPlace place) {
  switch (place.part) {
    case RunPart::none: return "";
    case RunPart::start: return "start";
    case RunPart::joining: return "joining the other ranks";
    case RunPart::preparation: return "preparation";
    case RunPart::arenas: return "making arenas";
    case RunPart::creation: return "creation";
    case RunPart::step: return "step " + std::to_string(place.step);
    case RunPart::evaluation: return "evaluating behind step " + std::to_string(place.step);
    case RunPart::save: return "saving behind step " + std::to_string(place.step);
    case RunPart::digest: return "digest";
    case RunPart::results: return "results";
    case RunPart::end: return "end";
  }
  return "";
}

void set_run_place(RunPlace now) {
  const auto step = static_cast<std::uint64_t>(now.step) & ((std::uint64_t{1} << kStepBits) - 1);
  current.store(static_cast<std::uint64_t>(now.part) << kStepBits | step, std::memory_order_relaxed);
}

RunPlace run_place() {
  const std::uint64_t word = current.load(std::memory_order_relaxed);
  return {static_cast<RunPart>(word >> kStepBits),
          static_cast<std::int64_t>(word & ((std::uint64_t{1} << kStepBits) - 1))};
}

BlockingCall::BlockingCall(const char* name) {
  call_since.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  call.store(name, std::memory_order_release);
}

BlockingCall::~BlockingCall() {
  call.store(nullptr, std::memory_order_release);
}

BlockingCall::Now BlockingCall::now() {
  const char* name = call.load(std::memory_order_acquire);
  return {name, call_since.load(std::memory_order_relaxed)};
}

}  // namespace shard
