// The instruction set of the matrix library's products: what in a run's numbers belongs to a machine.
#pragma once

#include <optional>
#include <string>

#include "traces/base/result.h"

namespace shard::cpu {

/// What products are computed with; the library sums in another order for each, so each has bits of its own. Extensions
/// beyond these (VNNI, BF16, AMX) change no product in fp32. Nothing else here depends on the processor (vectorise.h);
/// the C library's exp, log, pow, sin and cos may only where it lacks FMA, which every processor with AVX2 has.
enum class InstructionSet { generic, sse41, avx, avx2, avx512 };

[[nodiscard]] constexpr const char* to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::generic: return "generic";
    case InstructionSet::sse41: return "sse41";
    case InstructionSet::avx: return "avx";
    case InstructionSet::avx2: return "avx2";
    case InstructionSet::avx512: return "avx512";
  }
  return "?";
}

/// Settles the set for this process, before its first product, and says which it is. asked: this one and no other; it
/// wins over ONEDNN_MAX_CPU_ISA. Nothing: what the library takes by itself, the processor's best unless that variable
/// says less. What is settled stays: asking for another one is refused like one that the processor lacks (unavailable).
/// Call it from one thread.
[[nodiscard]] Result<InstructionSet> use_instruction_set(std::optional<InstructionSet> asked);

/// Name and version: "oneDNN 2.6.3".
[[nodiscard]] std::string matrix_library();

}  // namespace shard::cpu
