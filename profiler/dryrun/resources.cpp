// The assembler puts the files' bytes between two names each.
#include "profiler/dryrun/resources.h"

#define EMBED(NAME, PATH)                                                                                             \
  asm(".section .rodata\n.balign 16\n.global " #NAME "_begin\n" #NAME "_begin:\n.incbin \"" PATH "\"\n.global " #NAME \
      "_end\n" #NAME "_end:\n.byte 0\n.previous\n");                                                                  \
  extern "C" const std::byte NAME##_begin[];                                                                          \
  extern "C" const std::byte NAME##_end[];

EMBED(shardscope_embedded_standin, STANDIN_LIBRARY)
EMBED(shardscope_embedded_hook, HOOK_PROGRAM)

namespace shard::dryrun {

std::span<const std::byte> standin_library() {
  return {shardscope_embedded_standin_begin, shardscope_embedded_standin_end};
}

std::span<const std::byte> hook_program() {
  return {shardscope_embedded_hook_begin, shardscope_embedded_hook_end};
}

}  // namespace shard::dryrun
