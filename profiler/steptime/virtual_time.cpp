// Streams and events by their handles. An event that was not recorded is over, as CUDA's are.
#include "profiler/steptime/virtual_time.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace shard::steptime {

struct VirtualTime::State {
  std::unordered_map<std::int64_t, double> streams, events;
  std::deque<double> waiting;    ///< ends of the last launches
  std::deque<Placed> exchanges;  ///< those that may not be over, in the order in which they were given

  [[nodiscard]] static double of(const std::unordered_map<std::int64_t, double>& times, std::int64_t handle) {
    const auto found = times.find(handle);
    return found == times.end() ? 0 : found->second;
  }
  /// How long exchanges run between two moments; two at once count once, as far as they follow each other.
  [[nodiscard]] double beside(double begin, double end) const {
    double sum = 0, until = begin;
    for (const Placed& exchange : exchanges) {
      const double from = std::max(exchange.begin, until), to = std::min(exchange.end, end);
      if (to > from) sum += to - from, until = to;
    }
    return sum;
  }
};

VirtualTime::VirtualTime() : state_(std::make_unique<State>()) {}
VirtualTime::~VirtualTime() = default;

Placed VirtualTime::give(const Given& given) {
  State& s = *state_;
  host_ += given.host;
  const bool launches = given.deed == Deed::compute || given.deed == Deed::exchange;
  if (launches && s.waiting.size() == kAhead) {
    host_ = std::max(host_, s.waiting.front());
    s.waiting.pop_front();
  }
  Placed placed{.issued = host_, .begin = host_, .end = host_};
  const auto waits_until = [&](double time) {
    host_ = std::max(host_, time);
    placed.end = host_;
  };
  switch (given.deed) {
    case Deed::record: s.events[given.event] = std::max(host_, State::of(s.streams, given.stream)); break;
    case Deed::wait: {
      double& stream = s.streams[given.stream];
      stream = std::max(stream, State::of(s.events, given.event));
      break;
    }
    case Deed::host_waits_for_all: waits_until(device_); break;
    case Deed::host_waits_for_stream: waits_until(State::of(s.streams, given.stream)); break;
    case Deed::host_waits_for_event: waits_until(State::of(s.events, given.event)); break;
    case Deed::compute:
    case Deed::exchange: {
      double& stream = s.streams[given.stream];
      placed.begin = std::max(stream, host_ + kLaunch);
      placed.end = placed.begin + given.duration;
      if (given.deed == Deed::exchange) {
        while (s.exchanges.size() > 64) s.exchanges.pop_front();
        s.exchanges.push_back(placed);
      } else {
        placed.end += kContention * s.beside(placed.begin, placed.end);
      }
      stream = placed.end;
      s.waiting.push_back(stream);
      device_ = std::max(device_, stream);
      break;
    }
  }
  return placed;
}

}  // namespace shard::steptime
