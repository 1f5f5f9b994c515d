// Opens devices by number, or emulates them in one world of NCCL.
#include "executor/commands/own_gpus.h"

#include <optional>
#include <utility>

#include "executor/cuda/emulated/nccl.h"
#include "executor/cuda/kernels/kernels.h"

namespace shard::commands {

Result<std::unique_ptr<cuda::Nccl>> open_nccl() {
  const Result<const cuda::ModuleTable*> module = cuda::load_module();
  if (!module) return module.error();
  return (*module)->open_nccl();
}

Result<std::vector<Gpu>> open_gpus(int count) {
  std::vector<Gpu> gpus;
  for (int number = 0; number < count; ++number) {
    Result<cuda::Device> device = cuda::open_device(number);
    if (!device) return device.error();
    Result<std::unique_ptr<cuda::Nccl>> nccl = open_nccl();
    if (!nccl) return nccl.error();
    gpus.push_back({.device = std::move(*device), .nccl = std::move(*nccl)});
  }
  return gpus;
}

Result<std::vector<Gpu>> emulate_gpus(int count, cuda::EmulatedOptions options,
                                      const std::function<Bytes(int)>& capacity) {
  std::vector<Gpu> gpus;
  const auto world = cuda::make_nccl_world();
  const std::optional<cuda::PlantedFault> fault = std::exchange(options.fault, std::nullopt);
  for (int number = 0; number < count; ++number) {
    options.capacity = capacity(number);
    options.seed += 1;
    options.number = static_cast<std::uint32_t>(number);
    if (number + 1 == count) options.fault = fault;
    Result<std::unique_ptr<cuda::Api>> api = cuda::make_emulated(options);
    if (!api) return api.error();
    gpus.push_back({.device = {.api = std::move(*api), .kernels = &cuda::kernels()},
                    .nccl = cuda::make_emulated_nccl(world, options.seed, options.fault)});
  }
  return gpus;
}

std::vector<train::OwnDevice> own_devices(const std::vector<Gpu>& gpus) {
  std::vector<train::OwnDevice> devices;
  for (const Gpu& gpu : gpus) devices.push_back({*gpu.device.api, *gpu.device.kernels, *gpu.nccl});
  return devices;
}

}  // namespace shard::commands
