// Times what is enqueued on a stream, by events around many repetitions.
#pragma once

#include <functional>

#include "executor/cuda/api/api.h"

namespace shard::cuda {

/// Until the event is done, looking again and again. Errc::retryable when that takes over a minute.
[[nodiscard]] Result<void> wait_until_done(Api& api, Event event);

/// On a stream of its own. The device outlives it.
class Stopwatch {
 public:
  [[nodiscard]] static Result<Stopwatch> make(Api& api);

  /// Seconds of one call of `enqueue` on stream(), of the fastest of three rows of calls that take at least `least`
  /// together, after one call that is not counted. What disturbs a row only adds to it.
  [[nodiscard]] Result<double> seconds(const std::function<Result<void>()>& enqueue, double least) const;
  /// Enqueues an op of its own that launches what `launch` does, and touches `ranges`.
  [[nodiscard]] Result<void> op(std::span<const Range> ranges, const std::function<Result<void>(Stream)>& launch) const;
  [[nodiscard]] Stream stream() const { return stream_; }
  /// What was enqueued has ended.
  [[nodiscard]] Result<void> finish() const;

 private:
  explicit Stopwatch(Api& api) : api_(&api) {}
  [[nodiscard]] Result<double> row(const std::function<Result<void>()>& enqueue, int calls) const;

  Api* api_;
  Stream stream_ = nullptr;
  Event begin_ = nullptr;
  Event end_ = nullptr;
};

}  // namespace shard::cuda
