// The error of options that contradict each other.
#pragma once

#include <string>
#include <utility>

#include "traces/base/result.h"

namespace shard::cli {

/// `what` names the options as Command::describe() does, so with where each came from; `help` is the smallest change.
[[nodiscard]] inline Error contradiction(std::string what, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(what), .where = "options", .help = std::move(help)};
}

}  // namespace shard::cli
