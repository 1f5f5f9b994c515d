// The driver's functions for who asks the driver itself: by their names without a version (cuMemAlloc), and the version
// of CUDA that the caller was built for.
#include <cstring>
#include <string>

#include "profiler/standin/handles.h"
#include "profiler/standin/lookup.h"
#include "profiler/standin/made_up.h"

using namespace shard::standin;

STANDIN int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags);
STANDIN int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, int* found);

namespace {

constexpr int kInvalidValue = 1;

/// Where an older caller means something else by a name, the CUDA from which on it means the newer.
int newest_suffix(const char* name, int version) {
  static constexpr struct {
    const char* name;
    int version_of_2, version_of_3;
  } kChanged[] = {{"cuGetProcAddress", 12000, 99999},
                  {"cuDevicePrimaryCtxRelease", 11000, 99999},
                  {"cuStreamGetCaptureInfo", 11030, 12030}};
  for (const auto& each : kChanged)
    if (std::strcmp(each.name, name) == 0)
      return version >= each.version_of_3 ? 3 : version >= each.version_of_2 ? 2 : 1;
  return 3;
}

/// The function of that name; of others one that answers success.
void* function_named(const char* name, int version) {
  // The newest version first.
  for (int suffix = newest_suffix(name, version); suffix > 1; --suffix)
    if (void* const found = own_function((name + ("_v" + std::to_string(suffix))).c_str())) return found;
  if (void* const found = own_function(name)) return found;
  return made_up_function(name);
}

}  // namespace

STANDIN int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long, int* found) {
  if (name == nullptr || function == nullptr) return kInvalidValue;
  *function = function_named(name, version);
  if (found != nullptr) *found = 0;  // CU_GET_PROC_ADDRESS_SUCCESS
  return kSuccess;
}
STANDIN int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
STANDIN int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags, int* found) {
  return cuGetProcAddress_v2(name, function, static_cast<int>(version), flags, found);
}
/// Tables of functions without names, by which a runtime that is linked statically makes sure of NVIDIA's driver.
STANDIN int cuGetExportTable(const void** table, const void*) {
  constexpr int kNotFound = 500;
  *table = nullptr;
  return kNotFound;
}
/// For modules of Python that have a runtime of their own (dryrun/python/cuda_python.py): this library's function of a
/// name, or one that is made up.
STANDIN void* shardscope_standin_function(const char* name) {
  void* const found = own_function(name);
  return found == nullptr ? made_up_function(name) : found;
}
/// As for a caller of the newest version.
STANDIN int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags, int* found) {
  constexpr int kNewest = 13000;
  return cuGetProcAddress_v2(name, function, kNewest, flags, found);
}
