// Ranks that share one GPU, or have one each.
#include "executor/commands/device_train.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <vector>

#include "executor/commands/gpu_of_rank.h"
#include "executor/commands/own_gpus.h"
#include "executor/cuda/api/load.h"
#include "executor/cuda/emulated/read_options.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/profile/device_recording.h"
#include "executor/train/device_run.h"
#include "sim/cli/contradiction.h"
#include "traces/base/deadline.h"

namespace shard::commands {
namespace {

/// What a rank takes of the device beside its arena: events, words, what allocations are rounded up to.
constexpr Bytes kBesideArena{1 << 20};

/// What ranks [begin, end) may use at most, or as much as they need.
Bytes emulated_capacity(const Prepared& p, std::int32_t begin, std::int32_t end) {
  if (p.prediction.device_capacity) return (end - begin) * (*p.prediction.device_capacity + kBesideArena);
  Bytes total{0};
  for (std::int32_t rank = begin; rank < end; ++rank)
    total += p.plans.of_rank(rank).arena_bytes[static_cast<std::size_t>(Memory::device)] + kBesideArena;
  return total;
}

/// Where a profile was asked for.
std::unique_ptr<device_profile::DeviceRecording> recording_of(const TrainOptions& o, std::ostream& lines) {
  if (!o.profile) return nullptr;
  auto recording = device_profile::DeviceRecording::start(o.strategy.emulated);
  if (!recording->is_recording())
    lines << "the device's own records are missing, times of ops are those of events: " << recording->why_not() << "\n";
  return recording;
}

cuda::Witness* witness_of(const std::unique_ptr<device_profile::DeviceRecording>& recording) {
  return recording == nullptr ? nullptr : recording->witness();
}

cuda::EmulatedActivity* activity_of(device_profile::DeviceRecording* recording) {
  return recording == nullptr ? nullptr : recording->activity();
}

Result<cuda::EmulatedOptions> emulated_options(const cuda::EmulatedOptions& options) {
  const char* const words = std::getenv(cuda::kEmulatedVariable);
  return cuda::read_emulated_options(words == nullptr ? "" : words, options);
}

Result<cuda::Device> device_of(const Prepared& p, const TrainOptions& o, device_profile::DeviceRecording* recording) {
  if (!o.strategy.emulated) return cuda::open_device(0);
  const Result<cuda::EmulatedOptions> emulated = emulated_options(
      {.capacity = emulated_capacity(p, 0, p.planned.strategy.world_size), .activity = activity_of(recording)});
  if (!emulated) return emulated.error();
  Result<std::unique_ptr<cuda::Api>> api = cuda::make_emulated(*emulated);
  if (!api) return api.error();
  return cuda::Device{.api = std::move(*api), .kernels = &cuda::kernels()};
}

/// How many GPUs this machine has; nothing where that is not known, and opening one says why.
std::optional<int> gpus_of_machine() {
  const Result<const cuda::ModuleTable*> module = cuda::load_module();
  if (!module) return std::nullopt;
  const Result<cuda::MachineReport> machine = (*module)->inspect();
  if (!machine) return std::nullopt;
  return static_cast<int>(machine->devices.size());
}

/// The GPU of rank `rank`, which has `place` on its machine.
Result<Gpu> open_gpu_of_rank(Rank rank, const PlaceOnMachine& place) {
  Result<std::unique_ptr<cuda::Nccl>> nccl = open_nccl();
  if (!nccl) return nccl.error();
  const Result<GpuOfRank> chosen = gpu_of_rank(rank.value, place, gpus_of_machine(), (*nccl)->version());
  if (!chosen) return chosen.error();
  // NCCL reads it when it makes its first communicator. Who has set it keeps what they chose.
  if (chosen->is_shared) setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
  Result<cuda::Device> device = cuda::open_device(chosen->gpu);
  if (!device) return device.error();
  return Gpu{.device = std::move(*device), .nccl = std::move(*nccl)};
}

/// One for each rank.
Result<std::vector<Gpu>> own_gpus(const Prepared& p, const TrainOptions& o,
                                  device_profile::DeviceRecording* recording) {
  const std::int32_t ranks = p.planned.strategy.world_size;
  if (!o.strategy.emulated) return open_gpus(ranks);
  const Result<cuda::EmulatedOptions> emulated = emulated_options({.activity = activity_of(recording)});
  if (!emulated) return emulated.error();
  return emulate_gpus(ranks, *emulated, [&](int rank) { return emulated_capacity(p, rank, rank + 1); });
}

/// One rank's run on its device.
Result<TrainReport> train_recorded(train::DeviceRank& rank, const Prepared& prepared, const TrainOptions& options,
                                   flight::Recorder* recorder, std::ostream& lines,
                                   device_profile::DeviceRecording* recording) {
  return train_on_rank(
      prepared, options, rank.communicator, lines,
      [&](const plan::Plan& plan, DataSource& data, cpu::ThreadPool& pool, const train::SessionOptions& session) {
        train::SessionOptions recorded = session;
        recorded.recorder = recorder;
        return train::run_session(rank, plan, data, pool, recorded);
      },
      recording);
}

/// A rank's run, whose report is kept where it is rank 0's.
std::function<Result<void>(train::DeviceRank&)> run_of(const Prepared& prepared, const TrainOptions& options,
                                                       std::span<flight::Recorder* const> recorders,
                                                       std::ostream& lines, device_profile::DeviceRecording* recording,
                                                       std::optional<TrainReport>& report) {
  return [&, recorders, recording](train::DeviceRank& rank) -> Result<void> {
    std::ostringstream unheard;
    const auto number = static_cast<std::size_t>(rank.communicator.rank().value);
    const bool first = number == 0;
    Result<TrainReport> own =
        train_recorded(rank, prepared, options, number < recorders.size() ? recorders[number] : nullptr,
                       first ? lines : unheard, recording);
    if (!own) return own.error();
    if (first) report = std::move(*own);
    return {};
  };
}

train::OwnDeviceOptions own_device_options(const Prepared& p, const TrainOptions& o, cuda::Witness* witness) {
  return {.deadline = deadline_of(o.timeout_seconds),
          .graphs = o.graphs,
          .witness = witness,
          .reproducible = p.planned.strategy.reproducible};
}

/// Which of its machine's ranks this is: what its launcher said, else counted by the machines' names.
Result<PlaceOnMachine> place_on_machine(Communicator& host, std::optional<int> said) {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name = {};
  const Result<std::vector<std::string>> all = host.exchange(name.data());
  if (!all) return all.error();
  const auto count = [&](auto end) {
    return static_cast<int>(std::count(all->begin(), end, std::string(name.data())));
  };
  return PlaceOnMachine{.number = said ? *said : count(all->begin() + host.rank().value), .ranks = count(all->end())};
}

}  // namespace

Result<bool> has_gpu_for_each(const TrainOptions& options, std::int32_t ranks) {
  if (ranks < 2) return false;
  if (!options.strategy.emulated) return gpus_of_machine().value_or(0) >= ranks;
  const Result<cuda::EmulatedOptions> emulated = emulated_options({});
  if (!emulated) return emulated.error();
  return emulated->devices >= ranks;
}

Result<void> choose_transport(const cli::Command& command, TrainOptions& options) {
  plan::Strategy& s = options.strategy.chosen;
  if (!s.reproducible || s.transport == plan::Transport::messages) return {};
  if (command.given("transport"))
    return cli::contradiction(
        command.describe("transport") + " plans no staging, in which GPUs that speak over NCCL sum reproducibly",
        "--transport messages, or --no-reproducible");
  s.transport = plan::Transport::messages;
  return {};
}

Result<void> choose_own_transport(const cli::Command& command, TrainOptions& options) {
  const Result<bool> own = has_gpu_for_each(options, options.strategy.chosen.world_size);
  if (!own) return own.error();
  return *own ? choose_transport(command, options) : Result<void>();
}

Result<void> run_on_devices(const Prepared& prepared, const TrainOptions& options,
                            device_profile::DeviceRecording* recording,
                            const std::function<Result<void>(train::DeviceRank&)>& run) {
  const std::int32_t ranks = prepared.planned.strategy.world_size;
  cuda::Witness* const witness = recording == nullptr ? nullptr : recording->witness();
  const Result<bool> own = has_gpu_for_each(options, ranks);
  if (!own) return own.error();
  if (*own) {
    const Result<std::vector<Gpu>> gpus = own_gpus(prepared, options, recording);
    if (!gpus) return gpus.error();
    return train::run_ranks(own_devices(*gpus), own_device_options(prepared, options, witness), run);
  }
  const Result<cuda::Device> device = device_of(prepared, options, recording);
  if (!device) return device.error();
  return train::run_ranks(*device->api, *device->kernels, ranks, deadline_of(options.timeout_seconds), options.graphs,
                          run, witness);
}

Result<TrainReport> train_on_device(const Prepared& prepared, const TrainOptions& options,
                                    std::span<flight::Recorder* const> recorders, std::ostream& lines) {
  std::optional<TrainReport> report;
  const auto recording = recording_of(options, lines);
  const auto run = run_of(prepared, options, recorders, lines, recording.get(), report);
  if (Result<void> r = run_on_devices(prepared, options, recording.get(), run); !r) return r.error();
  return std::move(*report);
}

Result<TrainReport> train_on_own_gpu(const Prepared& prepared, const TrainOptions& options, Communicator& host,
                                     std::optional<int> local_rank, flight::Recorder* recorder, std::ostream& lines) {
  if (host.size() == 1) return train_on_device(prepared, options, {&recorder, 1}, lines);
  const Result<PlaceOnMachine> place = place_on_machine(host, local_rank);
  if (!place) return place.error();
  const auto recording = recording_of(options, lines);
  const Result<Gpu> gpu = open_gpu_of_rank(host.rank(), *place);
  if (!gpu) return gpu.error();
  Result<TrainReport> own = Error{};
  const auto run = [&](train::DeviceRank& rank) -> Result<void> {
    own = train_recorded(rank, prepared, options, recorder, lines, recording.get());
    if (!own) return own.error();
    return {};
  };
  const train::OwnDevice device{*gpu->device.api, *gpu->device.kernels, *gpu->nccl};
  if (Result<void> r = train::run_rank(device, host, own_device_options(prepared, options, witness_of(recording)), run);
      !r)
    return r.error();
  return own;
}

Error ranks_of_a_launcher_on_emulated() {
  return {.code = Errc::unavailable,
          .what = "ranks that a launcher started cannot train on emulated devices, which are of one process",
          .where = "--device",
          .help = "shardscope train --ranks N --device emulated-cuda, without a launcher"};
}

}  // namespace shard::commands
