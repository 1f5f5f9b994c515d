// The part of a report that says who held memory: of an allocator's recording by site or stack, else by unit and op.
#pragma once

#include <optional>
#include <vector>

#include "sim/commands/holders_options.h"
#include "viewer/commands/report.h"

namespace shard::view {

/// What the options ask of the first trace, where it is of an allocator. Errc::contradiction where it has no such
/// memory.
[[nodiscard]] Result<std::optional<commands::HoldersAnswer>> who_held(const Session& session,
                                                                      const commands::HoldersOptions& options);

/// A row a holder, the largest first, and one for all others: they add up to what was allocated.
[[nodiscard]] ReportTable holders_table(const Session& session, const commands::HoldersAnswer& answer,
                                        const commands::HoldersOptions& options);

/// Of a trace that knows no stacks: by category and unit or op.
[[nodiscard]] ReportTable holders_by_op(const Session& session, const commands::HoldersOptions& options);

}  // namespace shard::view
