// Runs plans for GPUs in one process, all ranks on one device: an emulated one, unless tests are told otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/train/device_run.h"
#include "sim/compile/compile.h"
#include "tests/cuda/tested_device.h"

namespace shard {

/// How the device is, and how it is used.
struct EmulatedRun {
  cuda::EmulatedOptions device{};
  bool graphs = true;
  std::chrono::milliseconds deadline{60'000};
  std::shared_ptr<Progress> progress{};  ///< null: of its own
};

/// Of a device of our own: that all its memory is free again.
inline Result<void> check_nothing_is_left(cuda::Api& api) {
  const Result<cuda::MemoryInfo> memory = api.memory_info();
  // A device that has failed tells nothing; a GPU has other users.
  if (!memory || cuda::test::on_gpu() || memory->free == memory->total) return {};
  return Error{.code = Errc::internal,
               .what = "the run left " + std::to_string((memory->total - memory->free).count()) + " bytes allocated",
               .where = "device",
               .help = {}};
}

/// What each rank measured; fails with the first rank's error, or where memory is left. data: as open_data.
inline Result<std::vector<train::SessionResult>> run_emulated(const plan::PlanSet& plans, const model::Model& model,
                                                              const plan::Strategy& strategy,
                                                              const train::SessionOptions& session,
                                                              const std::string& data = "random",
                                                              const EmulatedRun& run = {}) {
  const cuda::Device device = cuda::test::tested_device(run.device);
  std::vector<train::SessionResult> results(static_cast<std::size_t>(strategy.world_size));
  const Result<void> done = train::run_ranks(
      *device.api, *device.kernels, strategy.world_size, run.deadline, run.graphs,
      [&](train::DeviceRank& rank) -> Result<void> {
        const std::int32_t number = rank.communicator.rank().value;
        auto source = open_data(data, model,
                                {.batch = strategy.micro_batch, .sequence = strategy.sequence, .seed = session.seed});
        if (!source) return source.error();
        cpu::ThreadPool pool(1);
        Result<train::SessionResult> result = train::run_session(rank, plans.of_rank(number), **source, pool, session);
        if (!result) return result.error();
        results[static_cast<std::size_t>(number)] = std::move(*result);
        return {};
      },
      nullptr, run.progress ? run.progress : std::make_shared<Progress>());
  if (Result<void> r = check_nothing_is_left(*device.api); !r) return r.error();
  if (!done) return done.error();
  return results;
}

}  // namespace shard
