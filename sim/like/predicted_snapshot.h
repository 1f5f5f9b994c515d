// What a replayed program would have PyTorch write down: its memory snapshot, with stacks of modules and operators.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/like/program/program.h"
#include "sim/like/pytorch/caching_allocator.h"
#include "sim/like/watched_device.h"
#include "traces/event.h"
#include "traces/reader.h"
#include "traces/snapshot.h"
#include "traces/stack_ids.h"

namespace shard::like {

/// As export_snapshot_again() takes it.
struct PredictedSnapshot {
  Snapshot snapshot;
  Trace names;  ///< names and stacks of the snapshot, nothing else
};

/// Is told every event of a replay. Stacks, innermost first: the operator in its module, the category of the memory
/// (kCategoryFile), the part of the step in its phase. Events have no times, since the replay has none.
class SnapshotWriter final : public ReplayListener {
 public:
  /// `program` is what stacks call the file of code without a module.
  explicit SnapshotWriter(std::string program) : program_(std::move(program)) { result_.snapshot.device_count = 1; }

  /// What follows is asked for by this operator, which lives as long as the writer.
  void begin_operator(Phase phase, const Operator& op);
  /// What follows is memory of this category.
  void begin_buffer(Category category);
  void taken(Address address, Bytes requested, AllocatorStream stream);
  /// The program is done with it, and another stream is not.
  void let_go(Address address, Bytes taken, AllocatorStream stream);
  void given_back(Address address, Bytes taken, AllocatorStream stream);
  void finish(const std::vector<SegmentView>& segments);

  void segment_taken(Address address, Bytes bytes, AllocatorStream stream) override;
  void segment_given_back(Address address, Bytes bytes) override;
  void pages_mapped(Address address, Bytes bytes, AllocatorStream stream) override;
  void pages_unmapped(Address address, Bytes bytes, AllocatorStream stream) override;

  /// After finish().
  [[nodiscard]] PredictedSnapshot take() { return std::move(result_); }

 private:
  void add(SnapshotAction action, Address address, Bytes bytes, AllocatorStream stream);
  NameId name(std::string_view text);
  StackId push(std::string_view function, std::string_view file, StackId caller);

  std::string program_;
  PredictedSnapshot result_;
  StackIds ids_;
  std::unordered_map<std::string, NameId> names_;
  std::string_view module_, operator_;
  Phase phase_{};
  Part part_{};
  StackId stack_{};
  std::map<Address, AllocatorStream> streams_;  ///< of segments
  std::map<Address, StackId> makers_;           ///< of live blocks and of segments' first bytes, by address
  std::set<Address> let_go_;                    ///< blocks that wait for another stream
};

}  // namespace shard::like
