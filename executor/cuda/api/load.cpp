// Finds the module, opens it, and sees that it is of this build.
#include "executor/cuda/api/load.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <system_error>

namespace shard::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libshardscope_cuda.so";

Error unusable(const fs::path& path, const std::string& why) {
  return {.code = Errc::unavailable,
          .what = "the module for GPUs cannot be used: " + why,
          .where = path.string(),
          .help = "build and install both again, with nvcc at hand"};
}

Result<const ModuleTable*> open_module(const fs::path& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return unusable(path, dlerror());
  auto* entry = reinterpret_cast<ModuleEntry>(dlsym(handle, kModuleEntry));
  if (entry == nullptr) return unusable(path, "it is no module of Shardscope's");
  const ModuleTable* table = entry(kModuleVersion);
  if (table->refused != nullptr) return unusable(path, table->refused);
  return table;
}

}  // namespace

std::vector<fs::path> module_places() {
  if (const char* given = std::getenv("SHARDSCOPE_CUDA_MODULE"); given != nullptr && *given != '\0') return {given};
  std::error_code fault;
  const fs::path folder = fs::read_symlink("/proc/self/exe", fault).parent_path();
  return {folder / kFile, folder / ".." / "lib" / kFile, folder / ".." / SHARDSCOPE_LIBRARY_FOLDER / kFile};
}

Result<const ModuleTable*> load_module(std::span<const fs::path> places) {
  for (const fs::path& path : places) {
    std::error_code fault;
    if (fs::exists(path, fault)) return open_module(path);
  }
  return Error{.code = Errc::unavailable,
               .what = "this build has no part for GPUs: there is no " +
                       (places.empty() ? std::string(kFile) : places.front().string()),
               .where = "",
               .help =
                   "install NVIDIA's CUDA toolkit, whose nvcc compiles it (12.8 or newer), then configure and build "
                   "again"};
}

Result<const ModuleTable*> load_module() {
  static const Result<const ModuleTable*> kModule = load_module(module_places());
  return kModule;
}

Result<Device> open_device(int device) {
  const Result<const ModuleTable*> module = load_module();
  if (!module) return module.error();
  Result<std::unique_ptr<Api>> api = (*module)->open(device);
  if (!api) return api.error();
  return Device{std::move(*api), (*module)->kernels};
}

}  // namespace shard::cuda
