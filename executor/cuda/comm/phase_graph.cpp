// Capture and launch of a phase; rank 0 makes the calls that are made once.
#include "executor/cuda/comm/phase_graph.h"

#include "executor/cuda/api/events.h"

namespace shard::cuda {

PhaseGraph::~PhaseGraph() {
  if (graph_ != nullptr) api_.destroy_graph(graph_);
}

Result<void> PhaseGraph::meet(int rank) {
  const std::int64_t target = (met_ / ranks_ + 1) * ranks_;
  ++met_;
  return turns_.until(rank, "all ranks of the device", [&] { return met_ >= target; });
}

Result<void> PhaseGraph::make_events() {
  ends_.resize(static_cast<std::size_t>(ranks_));
  for (Event& end : ends_)
    if (Result<void> r = cuda::make_events(api_, {&end}); !r) return r;
  return cuda::make_events(api_, {&fork_, &done_});
}

Result<void> PhaseGraph::begin(int rank, Stream stream) {
  if (Result<void> r = meet(rank); !r) return r;
  if (rank == 0) {
    origin_ = stream;
    if (Result<void> r = make_events(); !r) return r;
    if (Result<void> r = api_.begin_capture(origin_); !r) return r;
    if (Result<void> r = api_.record(fork_, origin_); !r) return r;
  }
  if (Result<void> r = meet(rank); !r) return r;
  return rank == 0 ? Result<void>() : api_.wait(stream, fork_);
}

Result<void> PhaseGraph::end(int rank, Stream stream) {
  if (Result<void> r = api_.record(ends_[static_cast<std::size_t>(rank)], stream); !r) return r;
  if (Result<void> r = meet(rank); !r) return r;
  if (rank == 0) {
    for (std::size_t other = 1; other < ends_.size(); ++other)
      if (Result<void> r = api_.wait(origin_, ends_[other]); !r) return r;
    const Result<Graph> graph = api_.end_capture(origin_);
    if (!graph) return graph.error();
    graph_ = *graph;
  }
  return meet(rank);
}

Result<void> PhaseGraph::launch(int rank) {
  if (Result<void> r = meet(rank); !r) return r;
  if (rank == 0) {
    if (Result<void> r = api_.launch_graph(graph_, origin_); !r) return r;
    if (Result<void> r = api_.record(done_, origin_); !r) return r;
  }
  return meet(rank);
}

}  // namespace shard::cuda
