// Which options of our own strategies have no meaning for another framework's prediction.
#pragma once

#include <initializer_list>
#include <string_view>

#include "sim/cli/command_line.h"
#include "traces/base/result.h"

namespace shard::commands {

/// "OPTION has no meaning for --like NAME: why".
[[nodiscard]] Error no_meaning_for_like(const cli::Command& command, std::string_view option, const char* why);

/// Errc::contradiction when one of `options` is given, or one that no framework we predict takes: those of tensor
/// parallelism, placement, loss scale, clipping, dropout, frozen parameters, chunk ownership and so on.
/// Those `allowed` are not refused.
[[nodiscard]] Result<void> refuse_own_options(const cli::Command& command, std::initializer_list<const char*> options,
                                              std::initializer_list<std::string_view> allowed = {});

}  // namespace shard::commands
