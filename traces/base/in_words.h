// Names of enumerators as people read them.
#pragma once

#include <string>
#include <string_view>

namespace shard {

/// "optimizer_state" as "optimizer state".
[[nodiscard]] std::string in_words(std::string_view identifier);

}  // namespace shard
