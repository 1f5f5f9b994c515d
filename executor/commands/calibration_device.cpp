// Opens the device and measures one thing after another.
#include "executor/commands/calibration_device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "executor/commands/own_gpus.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/cuda/api/events.h"
#include "executor/cuda/api/load.h"
#include "executor/cuda/emulated/read_options.h"
#include "executor/train/device_run.h"
#include "sim/target/cuda_workspace.h"

namespace shard::commands {
namespace {

/// How much is measured: enough to fill a GPU, or little enough for the host to play one.
struct DeviceSizes {
  std::vector<cuda::ProductSize> products;
  Bytes arrays;
  std::vector<Bytes> copies;
  std::vector<Bytes> collectives;
  std::vector<int> worlds;  ///< ranks that share the device
  int launches;
  Bytes host_arrays;
  double least;  ///< seconds of one row
};

DeviceSizes device_sizes(bool emulated) {
  constexpr std::int64_t kKiB = 1024;
  constexpr std::int64_t kMiB = 1024 * kKiB;
  if (emulated)
    return {.products = {{16, 16, 16}, {24, 8, 32}},
            .arrays = Bytes{16 * kKiB},
            .copies = {Bytes{kKiB}, Bytes{16 * kKiB}},
            .collectives = {Bytes{kKiB}, Bytes{4 * kKiB}},
            .worlds = {2},
            .launches = 8,
            .host_arrays = Bytes{kMiB},
            .least = 0};
  // Squares, and the products of GPT-2 of 768 and 1600 columns with 8192 rows.
  return {.products = {{1024, 1024, 1024},
                       {2048, 2048, 2048},
                       {4096, 4096, 4096},
                       {8192, 8192, 8192},
                       {8192, 2304, 768},
                       {8192, 768, 3072},
                       {8192, 6400, 1600}},
          .arrays = Bytes{256 * kMiB},
          .copies = {Bytes{4 * kKiB}, Bytes{64 * kKiB}, Bytes{kMiB}, Bytes{16 * kMiB}, Bytes{128 * kMiB}},
          .collectives = {Bytes{4 * kKiB}, Bytes{64 * kKiB}, Bytes{kMiB}, Bytes{16 * kMiB}, Bytes{128 * kMiB}},
          .worlds = {2, 4},
          .launches = 200,
          .host_arrays = Bytes{128 * kMiB},
          .least = 0.02};
}

/// What the emulated device's variable says; none for a GPU.
Result<std::optional<cuda::EmulatedOptions>> told_by_environment(bool emulated) {
  if (!emulated) return std::optional<cuda::EmulatedOptions>();
  const char* const words = std::getenv(cuda::kEmulatedVariable);
  const Result<cuda::EmulatedOptions> options = cuda::read_emulated_options(words == nullptr ? "" : words, {});
  if (!options) return options.error();
  return std::optional(*options);
}

Result<cuda::Device> measured_device(const std::optional<cuda::EmulatedOptions>& emulated) {
  if (!emulated) return cuda::open_device(0);
  Result<std::unique_ptr<cuda::Api>> api = cuda::make_emulated(*emulated);
  if (!api) return api.error();
  return cuda::Device{.api = std::move(*api), .kernels = &cuda::kernels()};
}

/// Of all GPUs, before this process has a context on any.
Result<std::optional<cuda::MachineReport>> machine_before(bool emulated) {
  if (emulated) return std::optional<cuda::MachineReport>();
  const Result<const cuda::ModuleTable*> module = cuda::load_module();
  if (!module) return module.error();
  Result<cuda::MachineReport> report = (*module)->inspect();
  if (!report) return report.error();
  return std::optional(std::move(*report));
}

/// What the context takes, where it is known what was free without it.
Result<Bytes> context_memory(cuda::Api& api, const std::optional<cuda::MachineReport>& before,
                             cuda::Measurements& into) {
  if (!before || before->devices.empty()) return Bytes{0};
  const Result<cuda::MemoryInfo> after = api.memory_info();
  if (!after) return after.error();
  const Bytes taken = std::max(before->devices.front().memory.free - after->free, Bytes{0});
  into.push_back({"memory of the context", static_cast<double>(taken.count()), "bytes",
                  "free memory of the device before it was opened, as the driver's management library counts it, and "
                  "after"});
  return taken;
}

/// Sums of arrays that no cache holds, on all cores.
double host_bandwidth(int cores, Bytes bytes, cuda::Measurements& into) {
  using Clock = std::chrono::steady_clock;
  cpu::ThreadPool pool(cores);
  const auto n = static_cast<std::size_t>(bytes.count()) / sizeof(float);
  std::array<std::vector<float>, 3> arrays;
  for (std::vector<float>& array : arrays) array.assign(n, 1.0F);
  const auto tasks = static_cast<std::size_t>(cores);
  double best = 0;
  for (int row = 0; row < 4; ++row) {
    const auto begin = Clock::now();
    pool.run(cores, [&](std::int64_t task) {
      const std::size_t first = n * static_cast<std::size_t>(task) / tasks;
      const std::size_t end = n * static_cast<std::size_t>(task + 1) / tasks;
      for (std::size_t i = first; i < end; ++i) arrays[2][i] = arrays[0][i] + arrays[1][i];
    });
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    if (took > 0) best = std::max(best, 3.0 * static_cast<double>(n * sizeof(float)) / took);
  }
  into.push_back({"host memory, sums of two arrays", best, "bytes/s",
                  std::to_string(cores) + " threads over arrays of " + std::to_string(bytes.count()) +
                      " bytes, what they read and write over the time, the fastest of four"});
  return best;
}

/// What a rank does; rank 0's figures are kept.
auto measuring(const DeviceSizes& sizes, std::string between, cuda::CollectiveRates& rates, cuda::Measurements& into) {
  return [&sizes, between = std::move(between), &rates, &into](train::DeviceRank& rank) -> Result<void> {
    cuda::Api& api = rank.room.api;
    const Result<cuda::Stream> stream = api.make_stream("communication");
    if (!stream) return stream.error();
    cuda::Event ended = nullptr;
    if (Result<void> r = cuda::make_events(api, {&ended}); !r) return r;
    rank.communicator.use(*stream);
    const RankGroup everyone{.first = 0, .stride = 1, .count = rank.communicator.size()};
    rank.communicator.will_call({&everyone, 1});
    const int own = rank.communicator.rank().value;
    const auto finish = [&]() -> Result<void> {
      if (Result<void> r = api.record(ended, *stream); !r) return r;
      Result<bool> done = api.is_done(ended);
      while (done && !*done) {
        if (Result<void> r = rank.communicator.while_waiting(); !r) return r;
        done = api.is_done(ended);
      }
      return done ? Result<void>() : done.error();
    };
    cuda::Measurements own_figures;
    std::vector<Bytes> whole = sizes.collectives;
    for (Bytes& size : whole) size = round_up(size, std::int64_t{4} * rank.communicator.size());
    const Result<cuda::CollectiveRates> measured =
        cuda::measure_collectives({rank.communicator, finish, between}, whole, sizes.least, own_figures);
    if (!measured) return measured.error();
    if (own != 0) return {};
    rates = *measured;
    into.insert(into.end(), own_figures.begin(), own_figures.end());
    return {};
  };
}

constexpr std::chrono::milliseconds kDeadline{60'000};

/// Of ranks that share the device.
Result<cuda::CollectiveRates> shared_collectives(const cuda::Device& device, int world, const DeviceSizes& sizes,
                                                 cuda::Measurements& into) {
  cuda::CollectiveRates rates;
  const auto run = measuring(sizes, std::to_string(world) + " ranks", rates, into);
  if (Result<void> r = train::run_ranks(*device.api, *device.kernels, world, kDeadline, false, run); !r)
    return r.error();
  return rates;
}

/// Of GPUs that have a rank each, over NCCL. Sums are NCCL's own; `reproducible`: messages and our tree.
Result<cuda::CollectiveRates> collectives_between(const std::vector<Gpu>& gpus, bool reproducible,
                                                  const DeviceSizes& sizes, cuda::Measurements& into) {
  cuda::CollectiveRates rates;
  const std::string between = std::to_string(gpus.size()) + " GPUs" + (reproducible ? ", reproducible" : "");
  const auto run = measuring(sizes, between, rates, into);
  const train::OwnDeviceOptions options{.deadline = kDeadline, .graphs = false, .reproducible = reproducible};
  if (Result<void> r = train::run_ranks(own_devices(gpus), options, run); !r) return r.error();
  return rates;
}

/// Its `latency` is that of `ranks` of them.
struct BetweenGpus {
  int ranks = 0;
  cuda::CollectiveRates rates{};
};

/// A start and a hop of a ring, from pairs and from all.
cluster::Link link_of(const BetweenGpus& pair, const BetweenGpus& all) {
  const double hop =
      all.ranks > pair.ranks ? std::max(0.0, (all.rates.latency - pair.rates.latency) / (all.ranks - pair.ranks)) : 0.0;
  return {.base = Seconds{std::max(0.0, pair.rates.latency - hop)},
          .latency = Seconds{hop},
          .bus_bandwidth = BytesPerSecond{all.rates.bandwidth}};
}

/// The link between this machine's GPUs; none where it has one, or no NCCL.
Result<std::optional<cluster::Link>> measure_between(int devices, const std::optional<cuda::EmulatedOptions>& emulated,
                                                     const DeviceSizes& sizes,
                                                     const std::function<void(const std::string&)>& say,
                                                     cuda::Measurements& into) {
  if (devices < 2 || (!emulated && !open_nccl())) return std::optional<cluster::Link>();
  std::vector<BetweenGpus> between;
  for (const int count : std::set{2, devices}) {
    say("collectives of " + std::to_string(count) + " GPUs");
    const Result<std::vector<Gpu>> gpus =
        emulated ? emulate_gpus(count, *emulated, [&](int) { return emulated->capacity; }) : open_gpus(count);
    if (!gpus) return gpus.error();
    const Result<cuda::CollectiveRates> rates = collectives_between(*gpus, false, sizes, into);
    if (!rates) return rates.error();
    between.push_back({count, *rates});
  }
  say("reproducible collectives of " + std::to_string(devices) + " GPUs");
  const Result<std::vector<Gpu>> gpus =
      emulated ? emulate_gpus(devices, *emulated, [&](int) { return emulated->capacity; }) : open_gpus(devices);
  if (!gpus) return gpus.error();
  if (const auto rates = collectives_between(*gpus, true, sizes, into); !rates) return rates.error();
  return std::optional(link_of(between.front(), between.back()));
}

Bytes memory_of_host() {
  return Bytes{static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)};
}

/// Of one device, which is closed again.
Result<DeviceFigures> measure_first(const std::optional<cuda::EmulatedOptions>& emulated, const DeviceSizes& sizes,
                                    int cores, const std::function<void(const std::string&)>& say) {
  const Result<std::optional<cuda::MachineReport>> before = machine_before(emulated.has_value());
  if (!before) return before.error();
  const Result<cuda::Device> device = measured_device(emulated);
  if (!device) return device.error();
  cuda::Api& api = *device->api;
  DeviceFigures f{.facts = api.facts(), .host_memory = memory_of_host()};
  f.devices = *before ? static_cast<std::int32_t>((*before)->devices.size()) : emulated->devices;
  const Result<Bytes> context = context_memory(api, *before, f.all);
  if (!context) return context.error();
  say("products");
  const Result<cuda::ProductRates> products =
      cuda::measure_products(api, sizes.products, plan::kProductWorkspace, sizes.least, f.all);
  if (!products) return products.error();
  f.products = *products;
  f.memory = f.facts.memory - *context - f.products.library_memory;
  say("memory of device and host");
  const Result<double> bandwidth = cuda::measure_bandwidth(api, *device->kernels, sizes.arrays, sizes.least, f.all);
  if (!bandwidth) return bandwidth.error();
  f.memory_bandwidth = *bandwidth;
  f.host_bandwidth = host_bandwidth(cores, sizes.host_arrays, f.all);
  say("copies");
  const Result<cuda::CopyRates> copies = cuda::measure_copies(api, sizes.copies, sizes.least, f.all);
  if (!copies) return copies.error();
  f.copies = *copies;
  say("launches");
  const Result<cuda::LaunchTimes> launches =
      cuda::measure_launches(api, *device->kernels, sizes.launches, sizes.least, f.all);
  if (!launches) return launches.error();
  f.launches = *launches;
  for (const int world : sizes.worlds) {
    say("collectives of " + std::to_string(world) + " ranks");
    const Result<cuda::CollectiveRates> shared = shared_collectives(*device, world, sizes, f.all);
    if (!shared) return shared.error();
    if (world == sizes.worlds.front()) f.collectives = *shared;
  }
  return f;
}

}  // namespace

Result<DeviceFigures> measure_device(bool emulated, int cores, const std::function<void(const std::string&)>& say) {
  const Result<std::optional<cuda::EmulatedOptions>> options = told_by_environment(emulated);
  if (!options) return options.error();
  const DeviceSizes sizes = device_sizes(emulated);
  Result<DeviceFigures> f = measure_first(*options, sizes, cores, say);
  if (!f) return f;
  Result<std::optional<cluster::Link>> between = measure_between(f->devices, *options, sizes, say, f->all);
  if (!between) return between.error();
  f->between = *between;
  return f;
}

}  // namespace shard::commands
