// `dryrun --routing`: which experts tokens are taken to go to.
#pragma once

#include <string>
#include <string_view>

#include "traces/base/result.h"

namespace shard::dryrun {

/// balanced, one-expert, zipf:S as they are; of a file the JSON list of shares that it has, one for each expert.
/// Errc::usage for another word, Errc::malformed where a file has no such list.
[[nodiscard]] Result<std::string> read_routing(const std::string& said);

/// "zipf:1.2"; "given" for a list.
[[nodiscard]] std::string name_of_routing(std::string_view routing);

}  // namespace shard::dryrun
