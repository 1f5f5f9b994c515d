// Costs a look at six words, and stores for what has changed; no call of the device.
#include "executor/cuda/backend/flight_log.h"

#include <algorithm>

#include "executor/rank/observer.h"
#include "executor/rank/request_of.h"

namespace shard::cuda {

using plan::Op;

namespace {

/// Written by the device meanwhile.
std::int32_t progress_of(const Lane& lane) {
  return lane.progress == nullptr ? -1 : *static_cast<const volatile std::int32_t*>(lane.progress);
}

}  // namespace

void FlightLog::begin(const plan::PhaseOps& phase) {
  if (recorder_ == nullptr) return;
  for (LaneOps& lane : lanes_) lane.next = 0, lane.told = false;
  if (phase_ == &phase) return;
  phase_ = &phase;
  place_of_.clear();
  for (LaneOps& lane : lanes_) lane.places.clear();
  for (std::size_t place = 0; place < phase.ops.size(); ++place) {
    lanes_[static_cast<std::size_t>(phase.ops[place].stream)].places.push_back(place);
    place_of_[phase.ops[place].id.value] = place;
  }
}

void FlightLog::look(const Lanes& lanes) {
  if (recorder_ == nullptr || phase_ == nullptr) return;
  const std::int64_t now_ns = executor::now_ns();
  for (std::size_t s = 0; s < lanes_.size(); ++s) tell_ended(lanes_[s], progress_of(lanes.all()[s]), now_ns);
  for (LaneOps& lane : lanes_) tell_begun(lane, lanes, now_ns);
}

void FlightLog::tell_ended(LaneOps& lane, std::int32_t progress, std::int64_t now_ns) {
  const Op* last = nullptr;
  for (; lane.next < lane.places.size() && static_cast<std::int64_t>(lane.places[lane.next]) <= progress; ++lane.next) {
    const Op& op = phase_->ops[lane.places[lane.next]];
    if (const auto* const call = std::get_if<plan::Communicate>(&op.action)) {
      if (!lane.told) recorder_->started(op, *call, executor::full_bytes(plan_, op, *call), now_ns);
      recorder_->landed(op, *call, now_ns);
    } else {
      last = &op;
    }
    lane.told = false;
  }
  if (last != nullptr) recorder_->ended(*last, now_ns);
}

void FlightLog::tell_begun(LaneOps& lane, const Lanes& lanes, std::int64_t now_ns) {
  if (lane.told || lane.next == lane.places.size()) return;
  const Op& op = phase_->ops[lane.places[lane.next]];
  if (!std::ranges::all_of(op.dependencies, [&](OpId id) { return has_ended(place_of_.at(id.value), lanes); })) return;
  lane.told = true;
  if (const auto* const call = std::get_if<plan::Communicate>(&op.action)) {
    recorder_->started(op, *call, executor::full_bytes(plan_, op, *call), now_ns);
    recorder_->waiting(op, *call, now_ns);
  } else {
    recorder_->begun(op, now_ns);
  }
}

bool FlightLog::has_ended(std::size_t place, const Lanes& lanes) const {
  return progress_of(lanes[phase_->ops[place].stream]) >= static_cast<std::int32_t>(place);
}

}  // namespace shard::cuda
