// The assembler puts the files' bytes between two names each.
#include "profiler/dryrun/resources.h"

#include <array>

#define EMBED(NAME, PATH)                                                                                             \
  asm(".section .rodata\n.balign 16\n.global " #NAME "_begin\n" #NAME "_begin:\n.incbin \"" PATH "\"\n.global " #NAME \
      "_end\n" #NAME "_end:\n.byte 0\n.previous\n");                                                                  \
  extern "C" const std::byte NAME##_begin[];                                                                          \
  extern "C" const std::byte NAME##_end[];

EMBED(shardscope_embedded_standin, STANDIN_LIBRARY)
EMBED(shardscope_embedded_sitecustomize, PYTHON_FILES "/sitecustomize.py")
EMBED(shardscope_embedded_steps, PYTHON_FILES "/steps.py")
EMBED(shardscope_embedded_phases, PYTHON_FILES "/phases.py")
EMBED(shardscope_embedded_small_values, PYTHON_FILES "/small_values.py")
EMBED(shardscope_embedded_routing, PYTHON_FILES "/routing.py")
EMBED(shardscope_embedded_alone, PYTHON_FILES "/alone.py")
EMBED(shardscope_embedded_together, PYTHON_FILES "/together.py")
EMBED(shardscope_embedded_ranks, PYTHON_FILES "/ranks.py")
EMBED(shardscope_embedded_recipe, PYTHON_FILES "/recipe.py")
EMBED(shardscope_embedded_megatron_recipe, PYTHON_FILES "/megatron_recipe.py")
EMBED(shardscope_embedded_torchtitan_recipe, PYTHON_FILES "/torchtitan_recipe.py")
EMBED(shardscope_embedded_smi, PYTHON_FILES "/smi.py")
EMBED(shardscope_embedded_cuda_python, PYTHON_FILES "/cuda_python.py")
EMBED(shardscope_embedded_fine_tuning, PYTHON_FILES "/fine_tuning.py")
EMBED(shardscope_embedded_llama_factory_recipe, PYTHON_FILES "/llama_factory_recipe.py")

namespace shard::dryrun {

std::span<const std::byte> standin_library() {
  return {shardscope_embedded_standin_begin, shardscope_embedded_standin_end};
}

std::span<const PythonFile> python_files() {
#define PYTHON_FILE(NAME)                                                  \
  {                                                                        \
#NAME ".py", {                                                         \
      shardscope_embedded_##NAME##_begin, shardscope_embedded_##NAME##_end \
    }                                                                      \
  }
  static const std::array kFiles{PythonFile PYTHON_FILE(sitecustomize),
                                 PythonFile PYTHON_FILE(steps),
                                 PythonFile PYTHON_FILE(phases),
                                 PythonFile PYTHON_FILE(small_values),
                                 PythonFile PYTHON_FILE(routing),
                                 PythonFile PYTHON_FILE(alone),
                                 PythonFile PYTHON_FILE(together),
                                 PythonFile PYTHON_FILE(ranks),
                                 PythonFile PYTHON_FILE(recipe),
                                 PythonFile PYTHON_FILE(megatron_recipe),
                                 PythonFile PYTHON_FILE(torchtitan_recipe),
                                 PythonFile PYTHON_FILE(smi),
                                 PythonFile PYTHON_FILE(cuda_python),
                                 PythonFile PYTHON_FILE(fine_tuning),
                                 PythonFile PYTHON_FILE(llama_factory_recipe)};
  return kFiles;
}

}  // namespace shard::dryrun
