// Lines two traces of one plan up: time and bytes of every op, peaks of every memory, every collective.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "traces/memory_by_op.h"
#include "traces/reader.h"

namespace shard {

/// The same quantity of both traces: the predicted one first where there is one.
template <class T>
struct Pair {
  T first{};
  T second{};

  [[nodiscard]] bool equal() const { return first == second; }
  friend bool operator==(const Pair&, const Pair&) = default;
};

/// One op of one rank, in one phase and micro-step. Occurrences in several steps are averaged, since a prediction needs
/// only one steady step where a run has many; a phase is a step here.
struct OpComparison {
  Rank rank{};
  OpId op{};
  Phase phase = Phase::steady_step;
  std::int32_t micro_step = 0;
  Stream stream = Stream::compute;
  std::string name;                ///< of the predicted trace where it has the op
  Pair<std::int64_t> steps;        ///< in how many steps it occurs; 0: absent
  Pair<double> seconds;            ///< per step, without waiting: of a collective, its transfer
  Pair<std::int64_t> bytes;        ///< over all its steps
  Pair<double> waiting_seconds{};  ///< per step, beside that
  /// Bytes per step are equal, exactly.
  [[nodiscard]] bool bytes_equal() const;
};

/// Sums, per step of the phase, over ops that both traces have.
struct GroupComparison {
  std::string key;  ///< name of the op, or of the stream
  Rank rank{};      ///< valid in sums per rank
  Phase phase = Phase::steady_step;
  std::int64_t op_count = 0;
  Pair<double> seconds;          ///< without waiting
  Pair<double> bytes;            ///< per step
  Pair<double> waiting_seconds;  ///< per step, beside that
};

struct MemoryComparison {
  Rank rank{};
  Memory memory = Memory::device;
  Phase phase = Phase::steady_step;
  Pair<std::int64_t> peak_bytes;  ///< extent
  Pair<std::int64_t> live_peak_bytes;
  bool compared = true;  ///< false for a phase that only one of the runs has
  [[nodiscard]] bool equal() const { return peak_bytes.equal() && live_peak_bytes.equal(); }
};

struct CategoryComparison {
  Rank rank{};
  Memory memory = Memory::device;
  Category category = Category::workspace;
  Pair<std::int64_t> peak_bytes;  ///< the category's own peak over the phases that both runs have
};

/// Of the whole run where both have equally many steps, else of one step of a phase that both have.
struct CollectiveComparison {
  Rank rank{};
  Collective kind = Collective::all_gather;
  std::optional<Phase> phase{};  ///< without: of the whole run, as the producers counted
  Pair<std::int64_t> count;
  Pair<std::int64_t> bytes;
  [[nodiscard]] bool equal() const { return count.equal() && bytes.equal(); }
};

/// A choice of the strategies that the traces do not share.
struct FieldComparison {
  std::string name;
  Pair<std::string> value;  ///< empty for what is not set
};

struct CompareOptions {
  bool force = false;        ///< line up traces of different plans
  std::size_t max_ops = 20;  ///< how many single ops to keep, largest residual first
};

struct Comparison {
  Pair<std::string> label;  ///< "predicted", "measured"; or "a", "b" where both are of one kind
  Pair<std::string> plan_hash;
  std::int32_t world_size = 1;
  bool same_plan = true;                          ///< false: lined up by force
  std::vector<FieldComparison> strategy;          ///< fields that differ, where both traces say theirs
  Pair<bool> complete;                            ///< neither broken off nor damaged
  Pair<std::int64_t> steps;                       ///< training steps that each has; how many is no difference
  Pair<double> step_seconds;                      ///< median of the steady steps
  std::vector<MemoryComparison> memory;           ///< by rank, memory, phase
  LargestMemoryDifference memory_by_op;           ///< live memory op by op, in plan order
  std::vector<CategoryComparison> categories;     ///< by rank, memory, category; where the traces have memory events
  std::vector<CollectiveComparison> collectives;  ///< by rank, kind, phase
  std::vector<OpComparison> ops;                  ///< the largest residuals in time
  std::vector<GroupComparison> names;             ///< by op name and phase, largest residual first
  std::vector<GroupComparison> streams;           ///< by stream and phase
  std::vector<GroupComparison> ranks;             ///< by rank and phase
  std::int64_t joined_op_count = 0;
  Pair<std::int64_t> unmatched_op_count;    ///< that only the first or only the second has
  std::int64_t unequal_op_bytes_count = 0;  ///< joined ops whose bytes per step differ

  /// Whether the traces say anything of it that could be compared. One rank has nobody to talk to.
  [[nodiscard]] bool memory_compared() const;
  [[nodiscard]] bool communication_compared() const { return !collectives.empty() || world_size == 1; }
  /// Every compared peak is equal, and at least one was compared; and so is what was live behind every op, where the
  /// traces have memory events of the same ops.
  [[nodiscard]] bool memory_equal() const;
  /// Count and bytes of every collective are equal; and some were compared, unless one rank has nobody to talk to.
  [[nodiscard]] bool communication_equal() const;
  /// What `compare --check` asks: memory and communication equal, both traces complete. Time is only reported.
  [[nodiscard]] bool equal() const {
    return memory_equal() && communication_equal() && complete.first && complete.second;
  }
};

/// Compares two traces; where one is predicted and one measured, the predicted one becomes the first.
///
/// Spans are joined on (rank, op, phase, micro-step). What a span waited is apart from its time, so that a transfer is
/// compared with a transfer. Peaks are the producers' own (ARENAS) where both traces have
/// them, else those of the memory events; a phase that one trace lacks altogether is listed and not compared. Fails
/// with Errc::contradiction when the plans differ, unless one was made again from the other (its parent's hash) or
/// `force` is set; `name_a` and `name_b` name the traces in that error, which says what differs in the strategies.
[[nodiscard]] Result<Comparison> compare_traces(const Trace& a, const Trace& b, const CompareOptions& options = {},
                                                const std::string& name_a = "first trace",
                                                const std::string& name_b = "second trace");

/// The object of `compare --json`, with schema_version. Pairs are keys predicted_X and measured_X (or a_X and b_X).
[[nodiscard]] nlohmann::ordered_json to_json(const Comparison& comparison);

/// The same for people: verdict, then a table each for memory, communication and time; at most `most_ops` names of ops.
[[nodiscard]] std::string to_text(const Comparison& comparison, std::size_t most_ops = 15);

}  // namespace shard
