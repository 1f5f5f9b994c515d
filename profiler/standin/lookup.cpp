// dlsym: who looks a function of CUDA up by its name, in whichever library, gets the stand-in's. For x86-64, as the
// library of functions that are made up.
#include "profiler/standin/lookup.h"

#include <dlfcn.h>

#ifdef __x86_64__

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "profiler/standin/made_up.h"

namespace {

using Lookup = void* (*)(void* library, const char* name);

/// cuMemAlloc, cuLaunchKernel.
bool is_of_driver(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
}

/// Whether a real library's function would look for a real device. A library says its version without one.
bool needs_a_device(std::string_view name) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"cuda", "cudnn", "cublas", "nccl", "nvrtc", "nvml"};
  return !name.ends_with("GetVersion") &&
         (is_of_driver(name) ||
          std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); }));
}

}  // namespace

extern "C" {

/// The C library's own; of its name there is a version by glibc's age.
__attribute__((visibility("hidden"))) Lookup shardscope_standin_real_dlsym = nullptr;

static void find_real_dlsym() {
  if (shardscope_standin_real_dlsym != nullptr) return;
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5"})
    if (void* const real = ::dlvsym(RTLD_NEXT, "dlsym", version); real != nullptr) {
      shardscope_standin_real_dlsym = reinterpret_cast<Lookup>(real);
      return;
    }
  std::abort();  // no glibc of x86-64
}

/// The stand-in's function of that name; nullptr where the C library is to be asked.
__attribute__((visibility("hidden"))) void* shardscope_standin_dlsym(void* library, const char* name) {
  find_real_dlsym();
  if (library == RTLD_NEXT || name == nullptr || !needs_a_device(name)) return nullptr;
  if (void* const here = shardscope_standin_real_dlsym(RTLD_DEFAULT, name)) return here;
  if (library == RTLD_DEFAULT || !(is_of_driver(name) || std::string_view(name).starts_with("nvml"))) return nullptr;
  return shard::standin::made_up_function(name);
}

/// The C library looks at where its caller stands (RTLD_NEXT), so it is jumped to, with its caller's own return
/// address.
__attribute__((visibility("default"), naked)) void* dlsym(void* /*library*/, const char* /*name*/) {
  asm("push %rdi\n"
      "push %rsi\n"
      "sub $8, %rsp\n"
      "call shardscope_standin_dlsym\n"
      "add $8, %rsp\n"
      "pop %rsi\n"
      "pop %rdi\n"
      "test %rax, %rax\n"
      "jne 1f\n"
      "jmp *shardscope_standin_real_dlsym(%rip)\n"
      "1: ret\n");
}

}  // extern "C"

static void* real_dlsym(void* library, const char* name) {
  find_real_dlsym();
  return shardscope_standin_real_dlsym(library, name);
}
#else
static void* real_dlsym(void* library, const char* name) {
  return ::dlsym(library, name);
}
#endif

void* shard::standin::own_function(const char* name) {
  static void* const here = [] {
    Dl_info info{};
    return ::dladdr(reinterpret_cast<const void*>(&own_function), &info) != 0
               ? ::dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_NOW)
               : nullptr;
  }();
  return here == nullptr ? nullptr : real_dlsym(here, name);
}
