// Gives frames and stacks their ids: equal ones have one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "traces/event.h"

namespace shard {

class StackIds {
 public:
  template <class Id>
  struct Given {
    Id id{};
    bool added = false;  ///< it is new, and its id the next one
  };
  [[nodiscard]] Given<FrameId> frame(const StackFrame& frame) { return give<FrameId>(frames_, frame); }
  [[nodiscard]] Given<StackId> stack(const StackNode& node) { return give<StackId>(stacks_, node); }

 private:
  template <class Id, class Map>
  [[nodiscard]] static Given<Id> give(Map& map, const typename Map::key_type& key) {
    const auto [at, added] = map.try_emplace(key, Id{static_cast<std::int32_t>(map.size())});
    return {at->second, added};
  }
  // Two numbers made one, then spread over all bits (the finaliser of SplitMix64).
  struct Hash {
    static std::size_t of(std::uint64_t high, std::uint64_t low) {
      std::uint64_t x = high << 32 ^ low;
      x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
      x = (x ^ x >> 27) * 0x94d049bb133111eb;
      return static_cast<std::size_t>(x ^ x >> 31);
    }
    std::size_t operator()(const StackFrame& frame) const {
      return of(static_cast<std::uint32_t>(frame.function.value),
                of(static_cast<std::uint32_t>(frame.file.value), static_cast<std::uint32_t>(frame.line)));
    }
    std::size_t operator()(const StackNode& node) const {
      return of(static_cast<std::uint32_t>(node.frame.value), static_cast<std::uint32_t>(node.caller.value));
    }
  };
  std::unordered_map<StackFrame, FrameId, Hash> frames_;
  std::unordered_map<StackNode, StackId, Hash> stacks_;
};

}  // namespace shard
