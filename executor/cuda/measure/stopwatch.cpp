// Events around rows of calls.
#include "executor/cuda/measure/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "executor/cuda/api/events.h"

namespace shard::cuda {

Result<void> wait_until_done(Api& api, Event event) {
  constexpr std::chrono::seconds kLongest{60};
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const Result<bool> done = api.is_done(event);
    if (!done) return done.error();
    if (*done) return {};
    if (std::chrono::steady_clock::now() - start > kLongest)
      return Error{.code = Errc::retryable,
                   .what = "the device did not finish within a minute what takes milliseconds",
                   .where = "calibrate",
                   .help = "shardscope inspect --device cuda says who else uses it"};
    std::this_thread::yield();
  }
}

Result<Stopwatch> Stopwatch::make(Api& api) {
  Stopwatch watch(api);
  const Result<Stream> stream = api.make_stream("measured");
  if (!stream) return stream.error();
  watch.stream_ = *stream;
  if (Result<void> r = make_events(api, {&watch.begin_, &watch.end_}); !r) return r.error();
  return watch;
}

Result<void> Stopwatch::op(std::span<const Range> ranges, const std::function<Result<void>(Stream)>& launch) const {
  if (Result<void> r = api_->begin_op(stream_, {.name = "measured", .ranges = ranges}); !r) return r;
  if (Result<void> r = launch(stream_); !r) return r;
  return api_->end_op(stream_);
}

Result<void> Stopwatch::finish() const {
  if (Result<void> r = api_->record(end_, stream_); !r) return r;
  return wait_until_done(*api_, end_);
}

Result<double> Stopwatch::row(const std::function<Result<void>()>& enqueue, int calls) const {
  if (Result<void> r = api_->record(begin_, stream_); !r) return r.error();
  for (int i = 0; i < calls; ++i)
    if (Result<void> r = enqueue(); !r) return r.error();
  if (Result<void> r = finish(); !r) return r.error();
  return api_->seconds_between(begin_, end_);
}

Result<double> Stopwatch::seconds(const std::function<Result<void>()>& enqueue, double least) const {
  constexpr int kRows = 3;
  constexpr int kMostCalls = 1 << 14;
  if (Result<double> first = row(enqueue, 1); !first) return first;
  int calls = 1;
  Result<double> took = row(enqueue, calls);
  while (took && *took < least && calls < kMostCalls) took = row(enqueue, calls *= 2);
  if (!took) return took;
  double best = *took;
  for (int i = 1; i < kRows; ++i) {
    took = row(enqueue, calls);
    if (!took) return took;
    best = std::min(best, *took);
  }
  return best / calls;
}

}  // namespace shard::cuda
