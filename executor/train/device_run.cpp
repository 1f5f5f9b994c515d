// Threads of ranks that share one GPU.
#include "executor/train/device_run.h"

#include <optional>
#include <thread>
#include <vector>

#include "executor/cuda/backend/backend.h"

namespace shard::train {

Result<SessionResult> run_session(DeviceRank& rank, const plan::Plan& plan, DataSource& data, cpu::ThreadPool& pool,
                                  const SessionOptions& options) {
  const auto backend =
      cuda::Backend::make(rank.room, plan, rank.communicator, data, pool, backend_options(options), options.disk_path);
  if (!backend) return backend.error();
  return run_session(**backend, plan, rank.communicator, options);
}

Result<void> run_ranks(cuda::Api& api, const cuda::Kernels& kernels, int ranks, std::chrono::milliseconds deadline,
                       bool graphs, const std::function<Result<void>(DeviceRank&)>& run) {
  cuda::Turns turns(ranks, deadline);
  cuda::PhaseGraph graph(api, turns, ranks);
  cuda::DeviceRoom room{api, kernels, turns, graphs ? &graph : nullptr, {}};
  auto communicators = cuda::make_same_device(ranks, room);
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(ranks));
  const auto rank_main = [&](int rank) {
    turns.enter(rank);
    DeviceRank own{room, *communicators[static_cast<std::size_t>(rank)]};
    const bool ended = turns.stopped().has_value();
    if (Result<void> r = ended ? Result<void>(*turns.stopped()) : run(own); !r) {
      const bool first = !turns.stopped();
      if (first) own.communicator.abort(r.error().what);
      // What another rank's end made of this one is no news.
      if (first) errors[static_cast<std::size_t>(rank)] = r.error();
    }
    turns.leave(rank);
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(rank_main, rank);
    rank_main(0);
  }
  for (const std::optional<Error>& error : errors)
    if (error) return *error;
  return {};
}

}  // namespace shard::train
