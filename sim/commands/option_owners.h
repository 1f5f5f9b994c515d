// Which options have a meaning for whose prediction.
#pragma once

#include <string_view>

#include "sim/like/frameworks/framework.h"

namespace shard::commands {

/// Whether `framework` (null: our own executor) has the option. Options that are of no prediction alone, such as those
/// of printing, have a meaning for all.
[[nodiscard]] bool has_meaning_for(const like::Framework* framework, std::string_view option);

}  // namespace shard::commands
