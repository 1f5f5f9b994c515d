// Collectives as PyTorch's profiler says them: what was called, how much it moved, and which kernel did it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/import/builder.h"
#include "traces/import/chrome_events.h"

namespace shard::import {

/// What a span of the profiler's category is; its name tells NCCL's kernels, and gloo's and MPI's calls, from others.
[[nodiscard]] Activity activity_of(std::string_view category, std::string_view name);

/// Which collective words mean: "_allgather_base", "ncclDevKernel_AllGather_RING_LL(...)", "nccl:all_to_all".
[[nodiscard]] Activity collective_named(std::string_view words);

/// Bytes of an element by PyTorch's names of types: "BFloat16", "c10::Half", "unsigned char", "float"; 0 for others.
[[nodiscard]] std::int64_t element_bytes(std::string_view type);

/// Kind and bytes of collectives. Kernels of newer profilers carry both; of older ones the call does that launched the
/// kernel: the one that the kernel's "External id" names, else one around the launch with the kernel's correlation.
/// That call is believed where the kernel has another name: one kernel of NCCL does the work of several collectives.
class KinetoCalls {
 public:
  /// The event becomes span number `span` of the builder, on this row.
  void add(const ChromeEvent& event, Builder& builder, RowId row, std::size_t span);
  /// Once all are there. Where the file draws no arrows, work of devices is joined to its launch by their correlation.
  void settle(Builder& builder);
  /// A rank that a call names, where one does and none names another.
  [[nodiscard]] std::optional<std::int64_t> rank() const { return several_ranks_ ? std::nullopt : rank_; }

 private:
  struct Call {
    RowId row{};
    std::int64_t begin_ns = 0, end_ns = 0;
    Activity kind = Activity::other_collective;
    std::int64_t bytes = -1;  // not known
  };
  struct Launch {
    RowId row{};
    std::int64_t time_ns = 0;
  };
  struct Kernel {
    std::size_t span = 0;
    std::int64_t correlation = -1, external = -1;
    bool kind_told = false;  // by its arguments
  };

  /// One end of a launch.
  struct End {
    std::int64_t correlation = -1;
    RowId row{};
    std::int64_t time_ns = 0;
    bool on_device = false;
  };

  void add_end(const ChromeEvent& event, Builder& builder, RowId row, const Span& span);
  void join_launches(Builder& builder) const;
  void add_call(const ChromeEvent& event, RowId row, const Span& span);
  static void take(const Call& call, const Kernel& kernel, Span& span);

  std::deque<Call> calls_;
  std::unordered_map<std::int64_t, std::size_t> by_external_;
  std::deque<std::pair<std::int64_t, Launch>> launches_;  // by correlation
  std::deque<Kernel> kernels_;                            // that lack kind or bytes
  std::deque<End> ends_;
  std::optional<std::int64_t> rank_;
  bool several_ranks_ = false;
};

}  // namespace shard::import
