// Which options have a meaning for the framework that is predicted: the one refusal of all others.
#pragma once

#include <string_view>

#include "sim/cli/command_line.h"
#include "sim/like/frameworks/framework.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::commands {

/// "OPTION has no meaning for --like NAME: why".
[[nodiscard]] Error no_meaning_for_like(const cli::Command& command, std::string_view option, std::string_view why);

/// Errc::contradiction for the first option that is given and that `framework` (null: our own executor) does not have,
/// naming who has it, or has in another stage than the strategy's alone.
[[nodiscard]] Result<void> refuse_other_options(const cli::Command& command, const like::Framework* framework,
                                                const plan::Strategy& strategy);

}  // namespace shard::commands
