// Manual pages in roff's man macros, made of the commands' own descriptions.
#pragma once

#include <span>
#include <string>

#include "sim/cli/describe.h"

namespace shard::cli {

/// shardscope(1): the commands, the questions that help answers, exit codes.
[[nodiscard]] std::string man_page(std::span<const CommandDescription> commands);
/// shardscope-COMMAND(1).
[[nodiscard]] std::string man_page(const CommandDescription& command, std::span<const CommandDescription> commands);

/// Text as roff prints it: no request, no escape, hyphens that can be copied.
[[nodiscard]] std::string roff_text(std::string_view text);

}  // namespace shard::cli
