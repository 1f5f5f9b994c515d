// Lists are told apart by a hash of their frames first: most have been seen before, and walking them is what costs.
#include "traces/import/snapshot_stacks.h"

#include <algorithm>

namespace shard::import {

using Kind = PickleReader::Kind;
using Value = PickleReader::Value;

namespace {

bool is_library(std::string_view file) {
  return file.ends_with(".so") || file.find(".so.") != std::string_view::npos;
}

}  // namespace

std::int32_t& SnapshotStacks::became(Value container) {
  const auto index = static_cast<std::size_t>(container.payload());
  if (index >= became_.size()) became_.resize(std::max(index + 1, 2 * became_.size()), -1);
  return became_[index];
}

FrameId SnapshotStacks::frame(const PickleReader& pickle, Value dict) {
  if (dict.kind() != Kind::dict) return builder_.frame({});
  if (const std::int32_t known = became(dict); known >= 0) return FrameId{known};
  const auto text = [&](std::string_view key) {
    const auto value = pickle.find(dict, key);
    return value ? pickle.text(*value) : std::string_view();
  };
  const std::string_view file = text("filename");
  const auto line = pickle.find(dict, "line");
  // Where names were looked up without debug information, PyTorch says how far into a library it is.
  const bool in_library = is_library(file);
  const FrameId id =
      builder_.frame({.function = builder_.name(text("name")),
                      .file = builder_.name(file),
                      .line = line && !in_library ? std::max(0, clamp32(pickle.integer(*line).value_or(0))) : 0});
  became(dict) = id.value;
  return id;
}

bool SnapshotStacks::is(StackId stack) const {
  for (const FrameId frame : frames_) {
    if (!stack.valid() || builder_.loaded.trace.stack_of(stack).frame != frame) return false;
    stack = builder_.loaded.trace.stack_of(stack).caller;
  }
  return !stack.valid();
}

StackId SnapshotStacks::stack() {
  std::uint64_t hash = frames_.size();
  for (const FrameId frame : frames_) hash = (hash ^ static_cast<std::uint64_t>(frame.value)) * 0x9e3779b97f4a7c15 >> 1;
  const auto [known, added] = by_hash_.try_emplace(hash);
  if (!added && is(known->second)) return known->second;
  StackId stack;
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) stack = builder_.stack({*frame, stack});
  known->second = stack;
  return stack;
}

Value SnapshotStacks::fold(const PickleReader& pickle, Value frames) {
  if (frames.kind() != Kind::list) return {};
  if (const std::int32_t known = became(frames); known >= 0) return {Kind::integer, known};
  frames_.clear();
  if (builder_.room(source_.offset()))
    for (const Value each : pickle.items(frames)) frames_.push_back(frame(pickle, each));
  if (frames_.empty()) return {};
  const StackId id = stack();
  became(frames) = id.value;
  return {Kind::integer, id.value};
}

StackId SnapshotStacks::id_of(Value folded) const {
  const bool known = folded.kind() == Kind::integer && folded.payload() >= 0 &&
                     static_cast<std::uint64_t>(folded.payload()) < builder_.loaded.trace.stacks.size();
  return known ? StackId{static_cast<std::int32_t>(folded.payload())} : StackId{};
}

}  // namespace shard::import
