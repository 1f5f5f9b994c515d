// Marks and the calls of modules cut the events of the busiest device.
#include "profiler/dryrun/phases.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profiler/dryrun/allocation_counts.h"
#include "traces/import/names.h"

namespace shard::dryrun {
namespace {

using Json = nlohmann::json;

/// Behind so many allocations of the recorded ones; less than none: before them.
struct PhaseBegin {
  Phase phase{};
  std::int64_t allocations = 0;
};

/// By stack: whether it is within the call of a module.
std::vector<bool> within_modules(const Trace& trace) {
  std::vector<bool> within(trace.stacks.size());
  for (std::size_t i = 0; i < within.size(); ++i) {  // a caller's id is smaller
    const StackNode& node = trace.stacks[i];
    within[i] = (node.caller.valid() && within[static_cast<std::size_t>(node.caller.value)]) ||
                (node.frame.valid() && trace.name_of(trace.frame_of(node.frame).function) == "_call_impl");
  }
  return within;
}

class PhaseMarking {
 public:
  PhaseMarking(const Json& said, LoadedTrace& recording)
      : said_(said),
        trace_(recording.trace),
        counts_(said.value("allocations", Json()), *recording.snapshot, busiest_device(*recording.snapshot)) {
    for (std::size_t i = 0; i < trace_.memory.size(); ++i)
      if (trace_.memory.rank[i].value == counts_.device()) rows_.push_back(i);
  }

  std::int64_t run() {
    if (!read_begins()) return 0;
    end_creation();
    std::size_t next = 0;
    std::int64_t seen = -counts_.live_at_start();
    Phase phase = Phase::creation;
    for (const std::size_t row : rows_) {
      if (trace_.memory.delta_bytes[row] > 0) {
        for (; next < begins_.size() && begins_[next].allocations <= std::max(seen, std::int64_t{0}); ++next)
          phase = begins_[next].phase;
        ++seen;
      }
      trace_.memory.phase[row] = phase;
    }
    return counts_.gone();
  }

 private:
  bool read_begins() {
    if (!counts_.fit()) return false;
    std::int64_t last = 0;
    for (const Json& mark : said_.value("marks", Json::array())) {
      if (!mark.is_array() || mark.size() != 2) return false;
      const std::optional<Phase> phase =
          mark[0].is_string() ? import::phase_named(mark[0].get<std::string>()) : std::nullopt;
      const std::int64_t count = counts_.of(mark[1]);
      if (!phase || count < last) return false;
      last = count;
      begins_.push_back({*phase, counts_.recorded_before(mark[1])});
    }
    return true;
  }

  /// What is marked as creation is so until a module is called; what comes then is the first step, or a run of one that
  /// does not train.
  void end_creation() {
    const bool trains = said_.value("first_backward", Json()).is_array();
    const std::optional<std::int64_t> first = first_call();
    std::int64_t end = first ? *first : counts_.recorded();
    if (trains) end = std::min(end, counts_.recorded_before(said_["first_backward"]));
    const Phase after = trains ? Phase::first_step : Phase::evaluate;
    begins_.insert(begins_.begin(), {Phase::creation, -counts_.live_at_start()});
    std::vector<PhaseBegin> split;
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const std::int64_t until = i + 1 < begins_.size() ? begins_[i + 1].allocations : counts_.recorded();
      PhaseBegin begin = begins_[i];
      if (begin.phase == Phase::creation && begin.allocations >= end) begin.phase = after;
      split.push_back(begin);
      if (begin.phase == Phase::creation && until > end) split.push_back({after, end});
    }
    begins_ = std::move(split);
  }

  /// Allocations before the first within a module's call.
  [[nodiscard]] std::optional<std::int64_t> first_call() const {
    const std::vector<bool> within = within_modules(trace_);
    std::int64_t seen = -counts_.live_at_start();
    for (const std::size_t row : rows_) {
      if (trace_.memory.delta_bytes[row] <= 0) continue;
      const StackId stack = trace_.memory.stack[row];
      if (seen >= 0 && stack.valid() && within[static_cast<std::size_t>(stack.value)]) return seen;
      ++seen;
    }
    return {};
  }

  const Json& said_;
  Trace& trace_;
  AllocationCounts counts_;
  std::vector<std::size_t> rows_;  ///< of the device
  std::vector<PhaseBegin> begins_;
};

}  // namespace

std::int64_t add_phases(const std::filesystem::path& file, LoadedTrace& recording) {
  std::ifstream in(file);
  const Json said = Json::parse(in, nullptr, false);
  return said.is_object() && recording.snapshot ? PhaseMarking(said, recording).run() : 0;
}

}  // namespace shard::dryrun
