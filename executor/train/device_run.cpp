// Threads of ranks.
#include "executor/train/device_run.h"

#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/in_process.h"
#include "executor/cuda/backend/backend.h"
#include "executor/cuda/comm/nccl_device.h"
#include "executor/cuda/comm/same_device.h"

namespace shard::train {

Result<SessionResult> run_session(DeviceRank& rank, const plan::Plan& plan, DataSource& data, cpu::ThreadPool& pool,
                                  const SessionOptions& options) {
  const auto backend =
      cuda::Backend::make(rank.room, plan, rank.communicator, data, pool, backend_options(options), options.disk_path);
  if (!backend) return backend.error();
  DeviceInUse device{.bytes = Bytes{0}, .ranks = rank.room.turns.ranks()};
  SessionOptions own = options;
  own.before_end = [&]() -> Result<void> {
    if (options.before_end)
      if (Result<void> r = options.before_end(); !r) return r;
    const Result<cuda::MemoryInfo> memory = rank.room.api.memory_info();
    if (!memory) return memory.error();
    device.bytes = memory->total - memory->free;
    return {};
  };
  Result<SessionResult> result = run_session(**backend, plan, rank.communicator, own);
  if (!result) (*backend)->give_up(result.error());
  if (result) result->device = device;
  return result;
}

Result<void> run_ranks(cuda::Api& api, const cuda::Kernels& kernels, int ranks, std::chrono::milliseconds deadline,
                       bool graphs, const std::function<Result<void>(DeviceRank&)>& run, cuda::Witness* witness,
                       std::shared_ptr<Progress> progress) {
  cuda::Turns turns(ranks, deadline, std::move(progress));
  cuda::PhaseGraph graph(api, turns, ranks);
  cuda::DeviceRoom room{api, kernels, turns, graphs ? &graph : nullptr, {}, witness};
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

namespace {

/// `failed` takes an error down before the others are told of it.
Result<void> run_and_leave(const OwnDevice& device, Communicator& host, const OwnDeviceOptions& options,
                           const std::function<Result<void>(DeviceRank&)>& run,
                           const std::function<void(const Error&)>& failed) {
  cuda::Turns turns(1, options.deadline, options.progress);
  cuda::PhaseGraph graph(device.api, turns, 1);
  cuda::DeviceRoom room{device.api, device.kernels, turns, options.graphs ? &graph : nullptr, {}, options.witness};
  const auto communicator = cuda::make_nccl_device(room, device.nccl, host, options.reproducible);
  DeviceRank rank{room, *communicator};
  Result<void> done = run(rank);
  if (done) done = communicator->leave();
  if (!done) {
    failed(done.error());
    communicator->abort(done.error().what);
  }
  return done;
}

}  // namespace

Result<void> run_rank(const OwnDevice& device, Communicator& host, const OwnDeviceOptions& options,
                      const std::function<Result<void>(DeviceRank&)>& run) {
  return run_and_leave(device, host, options, run, [](const Error&) {});
}

Result<void> run_ranks(std::span<const OwnDevice> devices, const OwnDeviceOptions& options,
                       const std::function<Result<void>(DeviceRank&)>& run) {
  const auto hosts =
      make_in_process(static_cast<int>(devices.size()), {.deadline = options.deadline}, options.progress);
  std::mutex mutex;
  std::optional<Error> first;
  // What one rank's end makes of the others is no news.
  const auto take_down = [&](const Error& error) {
    const std::lock_guard lock(mutex);
    if (!first) first = error;
  };
  const auto rank_main = [&](std::size_t rank) {
    static_cast<void>(run_and_leave(devices[rank], *hosts[rank], options, run, take_down));
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 1; rank < devices.size(); ++rank) threads.emplace_back(rank_main, rank);
    rank_main(0);
  }
  if (first) return *first;
  return {};
}

}  // namespace shard::train
