// The stacks of a memory snapshot, of which every event has one: lists of dicts become ids, each stack held once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "traces/import/builder.h"
#include "traces/import/pickle.h"

namespace shard::import {

class SnapshotStacks {
 public:
  SnapshotStacks(Builder& builder, const ByteSource& source) : builder_(builder), source_(source) {}

  /// For a list of {"name", "filename", "line"}, the innermost first: its StackId as an integer, which id_of() takes;
  /// none for anything else.
  [[nodiscard]] PickleReader::Value fold(const PickleReader& pickle, PickleReader::Value frames);
  /// The stack that a folded value stands for; invalid for anything else.
  [[nodiscard]] StackId id_of(PickleReader::Value folded) const;

 private:
  [[nodiscard]] FrameId frame(const PickleReader& pickle, PickleReader::Value dict);
  [[nodiscard]] StackId stack();
  [[nodiscard]] bool is(StackId stack) const;
  [[nodiscard]] std::int32_t& became(PickleReader::Value container);

  Builder& builder_;
  const ByteSource& source_;
  std::vector<std::int32_t> became_;  // by number of the container: the id of what it was, -1 where it was not seen
  std::vector<FrameId> frames_;       // of the list being folded
  std::unordered_map<std::uint64_t, StackId> by_hash_;  // the last one with that hash of its frames
};

}  // namespace shard::import
