// NVRTC, which compiles kernels at run time: nothing would run them, so whatever is compiled succeeds and is empty.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "profiler/standin/card.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

/// What stands in place of PTX and CUBIN: a text that ends where it begins.
constexpr char kNothing[] = "";
/// Cards that PyTorch's releases ask for: major * 10 + minor.
constexpr int kArchitectures[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120, 121};

/// Names of kernels as the program gave them; what it gets for them points here.
struct Names {
  std::mutex mutex;
  std::map<void*, std::map<std::string, std::string>> of;
};
Names& names() {
  static auto* const names = new Names;
  return *names;
}

}  // namespace

STANDIN int nvrtcVersion(int* major, int* minor) {
  *major = card().cuda_version / 1000;
  *minor = card().cuda_version % 1000 / 10;
  return kSuccess;
}
STANDIN const char* nvrtcGetErrorString(int error) {
  return error == kSuccess ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}
STANDIN int nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(kArchitectures));
  return kSuccess;
}
STANDIN int nvrtcGetSupportedArchs(int* architectures) {
  std::ranges::copy(kArchitectures, architectures);
  return kSuccess;
}
STANDIN int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*, const char* const*) {
  *program = fresh_handle();
  return kSuccess;
}
STANDIN int nvrtcDestroyProgram(void** program) {
  const std::lock_guard lock(names().mutex);
  names().of.erase(*program);
  *program = nullptr;
  return kSuccess;
}
STANDIN int nvrtcCompileProgram(void*, int, const char* const*) {
  return kSuccess;
}
STANDIN int nvrtcAddNameExpression(void* program, const char* expression) {
  const std::lock_guard lock(names().mutex);
  names().of[program].emplace(expression, expression);
  return kSuccess;
}
STANDIN int nvrtcGetLoweredName(void* program, const char* expression, const char** name) {
  const std::lock_guard lock(names().mutex);
  *name = names().of[program].emplace(expression, expression).first->second.c_str();
  return kSuccess;
}
STANDIN int nvrtcGetProgramLogSize(void*, std::size_t* bytes) {
  *bytes = sizeof(kNothing);
  return kSuccess;
}
STANDIN int nvrtcGetProgramLog(void*, char* log) {
  std::memcpy(log, kNothing, sizeof(kNothing));
  return kSuccess;
}
STANDIN int nvrtcGetPTXSize(void* program, std::size_t* bytes) {
  return nvrtcGetProgramLogSize(program, bytes);
}
STANDIN int nvrtcGetPTX(void* program, char* code) {
  return nvrtcGetProgramLog(program, code);
}
STANDIN int nvrtcGetCUBINSize(void* program, std::size_t* bytes) {
  return nvrtcGetProgramLogSize(program, bytes);
}
STANDIN int nvrtcGetCUBIN(void* program, char* code) {
  return nvrtcGetProgramLog(program, code);
}
