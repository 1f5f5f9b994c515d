// What the module exports: its table.
#include "executor/cuda/api/module.h"

namespace shard::cuda {
namespace {

const ModuleTable& module_table() {
  static const ModuleTable kTable{
#ifdef SHARDSCOPE_KERNEL_TABLE
      .kernels = &kernels(),
#endif
  };
  return kTable;
}

}  // namespace
}  // namespace shard::cuda

extern "C" __attribute__((visibility("default"))) const shard::cuda::ModuleTable* shardscope_cuda_module(int version) {
  static const shard::cuda::ModuleTable kOther{.refused = "it is of another build than this program"};
  return version == shard::cuda::kModuleVersion ? &shard::cuda::module_table() : &kOther;
}
