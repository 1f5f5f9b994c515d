// Events as the allocator writes them (c10/cuda/CUDACachingAllocator.cpp: record_trace, snapshot).
#include "sim/like/predicted_snapshot.h"

namespace shard::like {

NameId SnapshotWriter::name(std::string_view text) {
  const auto [at, added] =
      names_.try_emplace(std::string(text), NameId{static_cast<std::int32_t>(result_.names.names.size())});
  if (added) result_.names.names.emplace_back(text);
  return at->second;
}

StackId SnapshotWriter::push(std::string_view function, std::string_view file, StackId caller) {
  const StackFrame frame{.function = name(function), .file = name(file), .line = 0};
  const auto of = ids_.frame(frame);
  if (of.added) result_.names.frames.push_back(frame);
  const StackNode node{of.id, caller};
  const auto stack = ids_.stack(node);
  if (stack.added) result_.names.stacks.push_back(node);
  return stack.id;
}

void SnapshotWriter::begin_operator(Phase phase, const Operator& op) {
  module_ = op.module;
  operator_ = op.name;
  phase_ = phase;
  part_ = op.part;
}

void SnapshotWriter::begin_buffer(Category category) {
  StackId stack = push(to_string(part_), to_string(phase_), {});
  stack = push(to_string(category), kCategoryFile, stack);
  stack_ = push(operator_, module_.empty() ? std::string_view(program_) : module_, stack);
}

void SnapshotWriter::add(SnapshotAction action, Address address, Bytes bytes, AllocatorStream stream) {
  result_.snapshot.events.push_back({.action = action,
                                     .device = 0,
                                     .address = address,
                                     .bytes = bytes.count(),
                                     .stream = stream,
                                     .time_us = 0,
                                     .stack = stack_,
                                     .has_stack = true});
}

void SnapshotWriter::taken(Address address, Bytes requested, AllocatorStream stream) {
  add(SnapshotAction::alloc, address, requested, stream);
  makers_[address] = stack_;
}

void SnapshotWriter::let_go(Address address, Bytes taken, AllocatorStream stream) {
  add(SnapshotAction::free_requested, address, taken, stream);
  let_go_.insert(address);
}

void SnapshotWriter::given_back(Address address, Bytes taken, AllocatorStream stream) {
  if (let_go_.erase(address) == 0) add(SnapshotAction::free_requested, address, taken, stream);
  add(SnapshotAction::free_completed, address, taken, stream);
  makers_.erase(address);
}

void SnapshotWriter::segment_taken(Address address, Bytes bytes, AllocatorStream stream) {
  streams_[address] = stream;
  add(SnapshotAction::segment_alloc, address, bytes, stream);
}

void SnapshotWriter::segment_given_back(Address address, Bytes bytes) {
  add(SnapshotAction::segment_free, address, bytes, streams_[address]);
}

void SnapshotWriter::pages_mapped(Address address, Bytes bytes, AllocatorStream stream) {
  add(SnapshotAction::segment_map, address, bytes, stream);
}

void SnapshotWriter::pages_unmapped(Address address, Bytes bytes, AllocatorStream stream) {
  add(SnapshotAction::segment_unmap, address, bytes, stream);
}

void SnapshotWriter::finish(const std::vector<SegmentView>& segments) {
  const NameId states[] = {name("inactive"), name("active_allocated"), name("active_pending_free")};
  for (const SegmentView& from : segments) {
    SnapshotSegment segment{.device = 0,
                            .address = from.address,
                            .bytes = from.bytes.count(),
                            .stream = from.stream,
                            .large = from.pool == Pool::large,
                            .expandable = from.expandable,
                            .has_stack = true};
    for (const BlockView& of : from.blocks) {
      const bool active = of.state != BlockState::free;
      SnapshotBlock block{.address = of.address,
                          .bytes = of.bytes.count(),
                          .requested_bytes = of.requested.count(),
                          .active = active,
                          .has_stack = true,
                          .state = states[static_cast<std::size_t>(of.state)]};
      if (const auto maker = makers_.find(of.address); active && maker != makers_.end()) block.stack = maker->second;
      if (active) {
        segment.active_bytes += block.bytes;
        segment.requested_bytes += block.requested_bytes;
      }
      if (of.state == BlockState::allocated) segment.allocated_bytes += block.bytes;
      segment.blocks.push_back(block);
    }
    result_.snapshot.segments.push_back(std::move(segment));
  }
}

}  // namespace shard::like
