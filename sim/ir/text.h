// Plan to text: for people, goldens, diffs and bug reports.
#pragma once

#include <string>

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

}  // namespace shard::plan
