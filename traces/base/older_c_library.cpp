// Functions that Debian 12's libstdc++.a and libgcc_eh.a ask of a C library newer than 2.34, for programs that are
// linked statically (SHARDSCOPE_STATIC) and run on older ones.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>

#define SHARDSCOPE_OWN extern "C" __attribute__((visibility("hidden")))

// std::random_device's source where there is one of this name (2.36).
SHARDSCOPE_OWN std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value)) __builtin_trap();
  return value;
}

#if __GLIBC_PREREQ(2, 35)
namespace {

struct ObjectSearch {
  std::uintptr_t address = 0;
  dl_find_object* found = nullptr;
};

/// A callback of dl_iterate_phdr(): 1 where this object has the address, which ends the search.
int look_into_object(dl_phdr_info* object, std::size_t, void* data) {
  const auto& search = *static_cast<ObjectSearch*>(data);
  bool here = false;
  std::uintptr_t unwinding = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) unwinding = begin;
    if (header.p_type != PT_LOAD || search.address < begin || search.address >= begin + header.p_memsz) continue;
    here = true;
    search.found->dlfo_map_start = reinterpret_cast<void*>(begin);
    search.found->dlfo_map_end = reinterpret_cast<void*>(begin + header.p_memsz);
  }
  if (!here || unwinding == 0) return 0;
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(unwinding);
  return 1;
}

}  // namespace

// What unwinds the stack for an exception asks this where an object's tables are (2.35).
SHARDSCOPE_OWN int _dl_find_object(void* address, dl_find_object* result) noexcept {
  *result = {};
  ObjectSearch search{reinterpret_cast<std::uintptr_t>(address), result};
  return dl_iterate_phdr(look_into_object, &search) == 1 ? 0 : -1;
}
#endif
