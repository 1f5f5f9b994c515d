// Ranks that share one GPU.
#include "executor/commands/device_train.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>

#include "executor/cuda/api/load.h"
#include "executor/cuda/emulated/read_options.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/train/device_run.h"
#include "traces/base/deadline.h"

namespace shard::commands {
namespace {

/// What a rank takes of the device beside its arena: events, words, what allocations are rounded up to.
constexpr Bytes kBesideArena{1 << 20};

/// What the run may use at most, or as much as it needs.
Bytes emulated_capacity(const Prepared& p) {
  const plan::Strategy& s = p.planned.strategy;
  if (p.prediction.device_capacity) return s.world_size * (*p.prediction.device_capacity + kBesideArena);
  Bytes total{0};
  for (std::int32_t rank = 0; rank < s.world_size; ++rank)
    total += p.plans.of_rank(rank).arena_bytes[static_cast<std::size_t>(Memory::device)] + kBesideArena;
  return total;
}

Result<cuda::Device> device_of(const Prepared& p, const TrainOptions& o) {
  if (!o.strategy.emulated) return cuda::open_device(0);
  const char* const words = std::getenv(cuda::kEmulatedVariable);
  const Result<cuda::EmulatedOptions> emulated =
      cuda::read_emulated_options(words == nullptr ? "" : words, {.capacity = emulated_capacity(p)});
  if (!emulated) return emulated.error();
  Result<std::unique_ptr<cuda::Api>> api = cuda::make_emulated(*emulated);
  if (!api) return api.error();
  return cuda::Device{.api = std::move(*api), .kernels = &cuda::kernels()};
}

}  // namespace

Result<TrainReport> train_on_device(const Prepared& prepared, const TrainOptions& options, std::ostream& lines) {
  const Result<cuda::Device> device = device_of(prepared, options);
  if (!device) return device.error();
  std::optional<TrainReport> report;
  const auto run = [&](train::DeviceRank& rank) -> Result<void> {
    std::ostringstream unheard;
    const bool first = rank.communicator.rank().value == 0;
    Result<TrainReport> own = train_on_rank(
        prepared, options, rank.communicator, first ? lines : unheard,
        [&](const plan::Plan& plan, DataSource& data, cpu::ThreadPool& pool, const train::SessionOptions& session) {
          return train::run_session(rank, plan, data, pool, session);
        });
    if (!own) return own.error();
    if (first) report = std::move(*own);
    return {};
  };
  if (Result<void> r = train::run_ranks(*device->api, *device->kernels, prepared.planned.strategy.world_size,
                                        deadline_of(options.timeout_seconds), options.graphs, run);
      !r)
    return r.error();
  return std::move(*report);
}

Error ranks_of_a_launcher_on_gpus() {
  return {.code = Errc::unavailable,
          .what = "ranks that a launcher started cannot train on GPUs yet: all ranks of a run share one",
          .where = "--device",
          .help = "shardscope train --ranks N --device cuda, without a launcher"};
}

}  // namespace shard::commands
