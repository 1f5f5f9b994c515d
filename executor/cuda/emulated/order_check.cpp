// Clocks of streams.
#include "executor/cuda/emulated/order_check.h"

#include <algorithm>

namespace shard::cuda::emulated {
namespace {

bool covers(const Clock& clock, const Stamp& stamp) {
  const auto lane = static_cast<std::size_t>(stamp.lane);
  return lane < clock.size() && clock[lane] >= stamp.tick;
}

}  // namespace

void OrderCheck::join(Clock& clock, const Clock& more) {
  if (more.size() > clock.size()) clock.resize(more.size());
  for (std::size_t stream = 0; stream < more.size(); ++stream) clock[stream] = std::max(clock[stream], more[stream]);
}

std::optional<Conflict> OrderCheck::enqueued(std::size_t stream, const std::vector<Access>& accesses) {
  Clock& clock = known_[stream];
  join(clock, host_);
  if (clock.size() <= stream) clock.resize(stream + 1);
  const std::int64_t tick = ++clock[stream];
  for (const Access& access : accesses) {
    const Stamp stamp{static_cast<std::int32_t>(stream), tick, access.op};
    if (auto conflict = history_.add(access, stamp, [&](const Stamp& before) { return covers(clock, before); }))
      return conflict;
  }
  return std::nullopt;
}

Clock OrderCheck::now(std::size_t stream) {
  join(known_[stream], host_);
  return known_[stream];
}

std::optional<Conflict> OrderCheck::freed(const std::byte* begin, std::int64_t bytes) {
  return history_.forget(begin, begin + bytes, [&](const Stamp& before) { return covers(host_, before); });
}

Error to_error(const Conflict& conflict, const std::string& place) {
  const std::string before = conflict.before.op->label + (conflict.before_writes ? " writes" : " reads");
  const std::string bytes = std::to_string(conflict.access.end - conflict.access.begin) + " bytes " + place;
  if (conflict.access.op == nullptr)
    return {Errc::internal, before + " " + bytes + ", which are freed before it is known to have finished", "", ""};
  return {Errc::internal,
          before + " " + bytes + " that " + conflict.access.op->label +
              (conflict.access.writes ? " writes" : " reads") + ", and nothing orders the two",
          "", ""};
}

}  // namespace shard::cuda::emulated
