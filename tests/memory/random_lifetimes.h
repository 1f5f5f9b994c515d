// Lifetimes to pack: random ones, and those of training steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/memory/pack.h"

namespace shard {

struct Lifetimes {
  std::vector<Bytes> items;
  std::vector<PackEvent> events;

  std::int32_t item(std::int64_t bytes) {
    items.push_back(Bytes{bytes});
    return static_cast<std::int32_t>(items.size()) - 1;
  }
  void acquire(std::int32_t index) { events.push_back({index, true}); }
  void release(std::int32_t index) { events.push_back({index, false}); }
};

/// Random lifetimes, sizes from one cell to many; some items live several times, some never end.
[[nodiscard]] Lifetimes random_lifetimes(std::uint32_t seed, int count, std::size_t live_limit, double skew);

/// Two steps of a transformer: saved activations freed in reverse, gathered units, temporaries, gradients; buffers of
/// one micro-batch are reused by the next. Without what is never freed, which would flatter the ratio.
[[nodiscard]] Lifetimes transformer(int layers, int micro_batches, bool gather, bool recompute, std::uint32_t seed);

}  // namespace shard
