// Whether work that touches the same bytes is ordered, whatever order it happened to run in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/emulated/access_history.h"
#include "executor/cuda/emulated/work.h"

namespace shard::cuda::emulated {

/// Every stream knows, of every stream, how much comes before its next piece of work: by its own order, by what it
/// waited for, and by what the host saw finished before it enqueued. Needs no seed and no luck: it looks at work when
/// it is enqueued, before any of it runs.
class OrderCheck {
 public:
  void add_stream() { known_.emplace_back(); }

  /// A piece of work on a stream, all of whose accesses are one.
  std::optional<Conflict> enqueued(std::size_t stream, const std::vector<Access>& accesses);
  /// What is finished once the stream comes to here.
  [[nodiscard]] Clock now(std::size_t stream);
  void waits(std::size_t stream, const Clock& clock) { join(known_[stream], clock); }
  void host_saw(const Clock& clock) { join(host_, clock); }
  /// The bytes are the host's again. A conflict where it has not seen finished what touches them.
  std::optional<Conflict> freed(const std::byte* begin, std::int64_t bytes);

 private:
  static void join(Clock& clock, const Clock& more);
  std::vector<Clock> known_;  // by stream; its own entry is how much it has
  Clock host_;
  AccessHistory history_;
};

/// Both ops, and which bytes; `place` says where these are.
[[nodiscard]] Error to_error(const Conflict& conflict, const std::string& place);

}  // namespace shard::cuda::emulated
