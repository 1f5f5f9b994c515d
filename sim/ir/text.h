// Plan to text: for people, goldens, diffs, bug reports, and the hash that joins traces.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan {

/// What to print.
struct TextOptions {
  bool buffers = true;  ///< the table of buffers
  bool dependencies = true;
  bool lifetimes = true;
};

/// One line per buffer that any op touches, and one per op: id, stream, name, what it does, operands, edges.
[[nodiscard]] std::string to_text(const Plan& plan, const TextOptions& options = {});

/// One op on one line, without a line end.
[[nodiscard]] std::string to_text(const Plan& plan, const Op& op, const TextOptions& options = {});

/// 128 bits over the texts of all classes, the strategy, and which rank is in which class; 32 hex digits.
[[nodiscard]] std::string hash_of(const std::vector<Plan>& classes, const std::vector<std::int32_t>& class_of_rank);

}  // namespace shard::plan
