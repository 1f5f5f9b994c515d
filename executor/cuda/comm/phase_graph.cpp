// Capture and launch of a phase; the first seat makes the calls that are made once.
#include "executor/cuda/comm/phase_graph.h"

#include <utility>

#include "executor/cuda/api/events.h"

namespace shard::cuda {

PhaseGraph::~PhaseGraph() {
  let_go();
}

void PhaseGraph::let_go() {
  if (std::exchange(captures_, false))
    if (const Result<Graph> half = api_.end_capture(origin_); half) graph_ = *half;
  if (graph_ != nullptr) api_.destroy_graph(std::exchange(graph_, nullptr));
}

Result<void> PhaseGraph::meet(int seat) {
  const std::int64_t target = (met_ / ranks_ + 1) * ranks_;
  ++met_;
  return turns_.until(seat, "all ranks of the device", [&] { return met_ >= target; });
}

Result<void> PhaseGraph::make_events() {
  ends_.resize(static_cast<std::size_t>(ranks_));
  for (Event& end : ends_)
    if (Result<void> r = cuda::make_events(api_, {&end}); !r) return r;
  return cuda::make_events(api_, {&fork_, &done_});
}

Result<void> PhaseGraph::begin(int seat, Stream stream) {
  if (Result<void> r = meet(seat); !r) return r;
  if (seat == 0) {
    origin_ = stream;
    if (Result<void> r = make_events(); !r) return r;
    if (Result<void> r = api_.begin_capture(origin_); !r) return r;
    captures_ = true;
    if (Result<void> r = api_.record(fork_, origin_); !r) return r;
  }
  if (Result<void> r = meet(seat); !r) return r;
  return seat == 0 ? Result<void>() : api_.wait(stream, fork_);
}

Result<void> PhaseGraph::end(int seat, Stream stream) {
  if (Result<void> r = api_.record(ends_[static_cast<std::size_t>(seat)], stream); !r) return r;
  if (Result<void> r = meet(seat); !r) return r;
  if (seat == 0) {
    for (std::size_t other = 1; other < ends_.size(); ++other)
      if (Result<void> r = api_.wait(origin_, ends_[other]); !r) return r;
    captures_ = false;
    const Result<Graph> graph = api_.end_capture(origin_);
    if (!graph) return graph.error();
    graph_ = *graph;
  }
  return meet(seat);
}

Result<void> PhaseGraph::launch(int seat) {
  if (Result<void> r = meet(seat); !r) return r;
  if (seat == 0) {
    if (Result<void> r = api_.launch_graph(graph_, origin_); !r) return r;
    if (Result<void> r = api_.record(done_, origin_); !r) return r;
  }
  return meet(seat);
}

}  // namespace shard::cuda
