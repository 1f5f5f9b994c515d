// What the module exports: its table.
#include "executor/cuda/api/module.h"

#include "executor/cuda/module/device.h"
#include "executor/cuda/module/inspect.h"
#include "executor/cuda/module/real_nccl.h"

namespace shard::cuda {
namespace {

const ModuleTable& module_table() {
  static const ModuleTable kTable{
      .kernels = &kernels(),
      .open = open_real_device,
      .inspect = inspect_machine,
      .inspect_libraries = inspect_libraries,
      .open_nccl = [] { return open_real_nccl(); },
  };
  return kTable;
}

}  // namespace
}  // namespace shard::cuda

extern "C" __attribute__((visibility("default"))) const shard::cuda::ModuleTable* shardscope_cuda_module(int version) {
  static const shard::cuda::ModuleTable kOther{.refused = "it is of another build than this program"};
  return version == shard::cuda::kModuleVersion ? &shard::cuda::module_table() : &kOther;
}
