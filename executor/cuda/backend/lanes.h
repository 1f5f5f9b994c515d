// A rank's streams on its device: one for each stream of the plan that has ops, and how far each has got.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "executor/cuda/api/api.h"
#include "executor/cuda/kernels/kernels.h"
#include "sim/ir/plan.h"

namespace shard::cuda {

/// One stream. `progress` is pinned memory: the place in its phase of the last op that the stream has finished.
struct Lane {
  Stream stream = nullptr;
  Event end = nullptr;  ///< of what a phase put on it
  std::int32_t* progress = nullptr;
  std::byte* staging = nullptr;  ///< pinned, of ops that the host runs on device memory; as large as the largest needs
};

/// All of them, and the events of ops that other streams wait for. Lives as long as the Api.
class Lanes {
 public:
  /// Streams of every plan stream that `plan` uses, with `staging[stream]` bytes each.
  [[nodiscard]] static Result<Lanes> make(Api& api, const plan::Plan& plan, Rank rank,
                                          const std::array<Bytes, kStreamCount>& staging);

  [[nodiscard]] const Lane& operator[](shard::Stream stream) const { return lanes_[static_cast<std::size_t>(stream)]; }
  [[nodiscard]] const std::array<Lane, kStreamCount>& all() const { return lanes_; }

 private:
  std::array<Lane, kStreamCount> lanes_{};
};

}  // namespace shard::cuda
