// The assembler puts the files' bytes between two names each.
#include "profiler/dryrun/resources.h"

#include <array>

#define EMBED(NAME, PATH)                                                                                             \
  asm(".section .rodata\n.balign 16\n.global " #NAME "_begin\n" #NAME "_begin:\n.incbin \"" PATH "\"\n.global " #NAME \
      "_end\n" #NAME "_end:\n.byte 0\n.previous\n");                                                                  \
  extern "C" const std::byte NAME##_begin[];                                                                          \
  extern "C" const std::byte NAME##_end[];

EMBED(shardscope_embedded_standin, STANDIN_LIBRARY)
/// Names of python/*.py.
#define EACH_PYTHON_FILE(DO)                                                                                         \
  DO(sitecustomize)                                                                                                  \
  DO(steps)                                                                                                          \
  DO(holdings)                                                                                                       \
  DO(phases)                                                                                                         \
  DO(work)                                                                                                           \
  DO(small_values)                                                                                                   \
  DO(followed) DO(assumptions) DO(routing) DO(alone) DO(alone_store) DO(alone_libraries) DO(together) DO(ranks)      \
      DO(recipe) DO(megatron_recipe) DO(torchtitan_recipe) DO(smi) DO(cuda_python) DO(fine_tuning) DO(model_samples) \
          DO(unwritten) DO(llama_factory_recipe) DO(axolotl_recipe) DO(tuned) DO(apex_parts)

#define EMBED_PYTHON(NAME) EMBED(shardscope_embedded_##NAME, PYTHON_FILES "/" #NAME ".py")
EACH_PYTHON_FILE(EMBED_PYTHON)

namespace shard::dryrun {

std::span<const std::byte> standin_library() {
  return {shardscope_embedded_standin_begin, shardscope_embedded_standin_end};
}

std::span<const PythonFile> python_files() {
#define PYTHON_FILE(NAME) \
  PythonFile{#NAME ".py", {shardscope_embedded_##NAME##_begin, shardscope_embedded_##NAME##_end}},
  static const std::array kFiles{EACH_PYTHON_FILE(PYTHON_FILE)};
  return kFiles;
}

}  // namespace shard::dryrun
