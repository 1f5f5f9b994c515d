// The classes of runs that must end with the same bits: one model, one arithmetic, one number of micro-batches a step.
#pragma once

#include <compare>
#include <ostream>
#include <string>
#include <vector>

#include "tests/agreement/matrix.h"

namespace shard {

struct BitClass {
  bool llama = false;  ///< llama-nano; gpt2-nano otherwise
  plan::Precision precision = plan::Precision::fp32;
  bool fp32_reduce_scatter = false;
  std::int64_t micro_batches = 8;  ///< M, of one sequence each
  auto operator<=>(const BitClass&) const = default;
};

/// Both models in every arithmetic and M = 8 and 32.
inline std::vector<BitClass> bit_classes() {
  using plan::Precision;
  std::vector<BitClass> classes;
  for (const bool llama : {false, true})
    for (const auto& [precision, widened] : {std::pair{Precision::fp32, false}, std::pair{Precision::bf16, false},
                                             std::pair{Precision::bf16, true}, std::pair{Precision::fp16, false}})
      for (const std::int64_t micro_batches : {8, 32}) classes.push_back({llama, precision, widened, micro_batches});
  return classes;
}

/// For the names of tests: "gpt2_nano_bf16_widened_M8".
inline std::string name_of(const BitClass& c) {
  return std::string(c.llama ? "llama_nano_" : "gpt2_nano_") + to_string(c.precision) +
         (c.fp32_reduce_scatter ? "_widened_M" : "_M") + std::to_string(c.micro_batches);
}

/// In what GoogleTest prints.
inline void PrintTo(const BitClass& c, std::ostream* out) {
  *out << name_of(c);
}

/// On up to eight ranks.
inline Subject subject_of(const BitClass& c, std::int64_t sequence, std::int64_t steps) {
  Subject subject = c.llama ? kLlamaNano : kGpt2Nano;
  subject.global_batch = c.micro_batches;
  subject.sequence = sequence;
  subject.steps = steps;
  subject.worlds = {1, 2, 4, 8};
  subject.precision = c.precision;
  subject.fp32_reduce_scatter = c.fp32_reduce_scatter;
  return subject;
}

}  // namespace shard
