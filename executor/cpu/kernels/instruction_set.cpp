// Asks oneDNN, and holds it to one.
#include "executor/cpu/kernels/instruction_set.h"

#include <dnnl.h>

namespace shard::cpu {
namespace {

dnnl_cpu_isa_t limit(InstructionSet set) {
  switch (set) {
    case InstructionSet::generic: break;  // the library has no such limit
    case InstructionSet::sse41: return dnnl_cpu_isa_sse41;
    case InstructionSet::avx: return dnnl_cpu_isa_avx;
    case InstructionSet::avx2: return dnnl_cpu_isa_avx2;
    case InstructionSet::avx512: return dnnl_cpu_isa_avx512_core;
  }
  return dnnl_cpu_isa_all;
}

/// What the library uses from now on: asking settles it. Its values are sets of bits, each with those it builds on.
InstructionSet in_use() {
  const auto isa = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  for (InstructionSet set : {InstructionSet::avx512, InstructionSet::avx2, InstructionSet::avx, InstructionSet::sse41})
    if (const auto bits = static_cast<unsigned>(limit(set)); (isa & bits) == bits) return set;
  return InstructionSet::generic;
}

}  // namespace

Result<InstructionSet> use_instruction_set(std::optional<InstructionSet> asked) {
  if (asked) static_cast<void>(dnnl_set_max_cpu_isa(limit(*asked)));  // what came of it is asked next
  const InstructionSet used = in_use();
  if (!asked || used == *asked) return used;
  return Error{.code = Errc::unavailable,
               .what = std::string("the matrix library cannot compute with ") + to_string(*asked) + " here: it uses " +
                       to_string(used),
               .where = "--instruction-set",
               .help = std::string("--instruction-set ") + (used == InstructionSet::avx2 ? to_string(used) : "auto") +
                       ", or a processor that has it"};
}

std::string matrix_library() {
  const dnnl_version_t* const v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch);
}

}  // namespace shard::cpu
