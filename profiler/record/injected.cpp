// The assembler puts the file's bytes between two names.
#include "profiler/record/injected.h"

#ifdef INJECTED_LIBRARY
asm(".section .rodata\n.balign 16\n.global shardscope_embedded_inject_begin\nshardscope_embedded_inject_begin:\n"
    ".incbin \"" INJECTED_LIBRARY
    "\"\n.global shardscope_embedded_inject_end\nshardscope_embedded_inject_end:\n.byte 0\n.previous\n");
extern "C" const std::byte shardscope_embedded_inject_begin[];
extern "C" const std::byte shardscope_embedded_inject_end[];
#endif

namespace shard::profiler {

std::span<const std::byte> injected_library() {
#ifdef INJECTED_LIBRARY
  return {shardscope_embedded_inject_begin, shardscope_embedded_inject_end};
#else
  return {};
#endif
}

}  // namespace shard::profiler
