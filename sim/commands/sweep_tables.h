// A sweep as tables: all figures for other programs, the chief ones for people.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/table.h"
#include "sim/commands/sweep_rows.h"

namespace shard::commands {

/// Every figure of every row, in the order of the rows. Columns: "row", the swept options (with '_' for '-': the
/// field's value where a field of a strategy has that key, else the text that was given as a number, a truth or a
/// text), "status" (also "tight", which fits), "fits" (null: contradiction), "reason", "on_front", "options", "model",
/// "cluster", "memory_of"; the figures by their keys in `simulate --json`; "sent_bytes" and one "KIND_bytes" for each
/// collective, of one rank and one step; "largest_category" with its bytes, "largest_holder" with its bytes, a
/// "CATEGORY_bytes" each, at the device's peak; the strategy as a line of text, the plan's hash, and what is left of
/// the strategy's fields by their keys. What a row does not have is null.
[[nodiscard]] cli::Table all_columns(const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows);

/// Best first, "*" before those on the front. Reasons of rows that contradict themselves stand as "[N]", where N is the
/// reason's number in `reasons`, from 1 on.
[[nodiscard]] cli::Table chief_columns(const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows,
                                       std::vector<std::string>& reasons);

/// What tells a row from the others, as it is typed: "--stage 3 --micro-batch 2".
[[nodiscard]] std::string options_of(const std::vector<SweptOption>& lists, const SweepRow& row);

}  // namespace shard::commands
