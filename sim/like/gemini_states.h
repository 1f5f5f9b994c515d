// The states of tensors in chunks, as far as they decide what may be released, moved and reduced.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/chunk/layout.h"
#include "sim/like/gemini_step.h"

namespace shard::like {

enum class TensorState : std::uint8_t { hold, compute, hold_after_backward, ready_for_reduce };

/// Tensors by chunk and state. The peer's FREE (a tensor whose chunk a rank does not have) counts as hold.
class TensorStates {
 public:
  TensorStates(const ChunkLayout& layout, const std::vector<HookedOp>& hooked) : counts_(layout.chunks.size()) {
    for (std::size_t c = 0; c < layout.chunks.size(); ++c)
      for (const PlacedParameter& p : layout.chunks[c].parameters) {
        if (chunk_of_.size() <= p.parameter) chunk_of_.resize(p.parameter + 1);
        chunk_of_[p.parameter] = c;
        ++counts_[c].in[0];
      }
    states_.resize(chunk_of_.size(), TensorState::hold);
    backward_uses_.resize(chunk_of_.size(), 0);
    for (const HookedOp& op : hooked)
      if (op.part == plan::Part::backward)
        for (std::size_t p : op.parameters) ++backward_uses_[p];
    left_ = backward_uses_;
  }

  [[nodiscard]] std::size_t chunk_of(std::size_t parameter) const { return chunk_of_[parameter]; }
  [[nodiscard]] std::vector<std::size_t> chunks_of(const std::vector<std::size_t>& parameters) const {
    std::vector<std::size_t> chunks;
    for (std::size_t p : parameters)
      if (std::find(chunks.begin(), chunks.end(), chunk_of_[p]) == chunks.end()) chunks.push_back(chunk_of_[p]);
    return chunks;
  }

  void set(std::size_t parameter, TensorState state) {
    Counts& counts = counts_[chunk_of_[parameter]];
    --counts.of(states_[parameter]);
    ++counts.of(state);
    states_[parameter] = state;
  }
  void hold_all(const shard::Chunk& chunk) {
    for (const PlacedParameter& p : chunk.parameters) set(p.parameter, TensorState::hold);
  }

  /// Some tensor is being used, or its gradient lies in its place.
  [[nodiscard]] bool busy(std::size_t chunk) const {
    return counts_[chunk].of(TensorState::compute) + counts_[chunk].of(TensorState::ready_for_reduce) > 0;
  }
  [[nodiscard]] bool all_hold(std::size_t chunk) const { return all(chunk, TensorState::hold); }
  [[nodiscard]] bool all_ready(std::size_t chunk) const { return all(chunk, TensorState::ready_for_reduce); }

  /// A backward op of the parameter has run; true when it was the last of the step, so that its gradient is complete.
  [[nodiscard]] bool gradient_complete(std::size_t parameter) {
    if (--left_[parameter] > 0) return false;
    left_[parameter] = backward_uses_[parameter];
    return true;
  }

 private:
  struct Counts {
    std::int64_t in[4] = {};
    [[nodiscard]] std::int64_t& of(TensorState s) { return in[static_cast<std::size_t>(s)]; }
    [[nodiscard]] std::int64_t of(TensorState s) const { return in[static_cast<std::size_t>(s)]; }
  };
  [[nodiscard]] bool all(std::size_t chunk, TensorState state) const {
    const Counts& c = counts_[chunk];
    return c.of(state) == c.in[0] + c.in[1] + c.in[2] + c.in[3];
  }

  std::vector<std::size_t> chunk_of_;
  std::vector<TensorState> states_;
  std::vector<Counts> counts_;
  std::vector<std::int64_t> backward_uses_;
  std::vector<std::int64_t> left_;
};

}  // namespace shard::like
