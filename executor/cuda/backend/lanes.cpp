// Streams, their ends, their progress words and their staging.
#include "executor/cuda/backend/lanes.h"

#include <string>

#include "executor/cuda/api/events.h"

namespace shard::cuda {

Result<Lanes> Lanes::make(Api& api, const plan::Plan& plan, Rank rank, const std::array<Bytes, kStreamCount>& staging) {
  static constexpr std::array<const char*, kStreamCount> kNames{"compute",  "communication", "copy in",
                                                                "copy out", "optimizer",     "host"};
  Lanes lanes;
  std::array<bool, kStreamCount> used{};
  used[static_cast<std::size_t>(shard::Stream::compute)] = true;        // phases begin and end on it
  used[static_cast<std::size_t>(shard::Stream::communication)] = true;  // communicators are given it
  for (const plan::PhaseOps& phase : plan.phases)
    for (const plan::Op& op : phase.ops) used[static_cast<std::size_t>(op.stream)] = true;
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (!used[s]) continue;
    Lane& lane = lanes.lanes_[s];
    const Result<Stream> stream = api.make_stream("rank " + std::to_string(rank.value) + ' ' + kNames[s]);
    if (!stream) return stream.error();
    lane.stream = *stream;
    if (Result<void> r = make_events(api, {&lane.end}); !r) return r.error();
    // A line of its own for the word, so that streams do not share one.
    const Result<std::byte*> pinned = api.allocate_pinned(Bytes{64} + staging[s]);
    if (!pinned) return pinned.error();
    lane.progress = reinterpret_cast<std::int32_t*>(*pinned);
    *lane.progress = -1;
    lane.staging = *pinned + 64;
  }
  return lanes;
}

}  // namespace shard::cuda
