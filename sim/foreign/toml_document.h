// TOML as a document.
#pragma once

#include <string>
#include <string_view>

#include "sim/foreign/document.h"
#include "traces/base/result.h"

namespace shard::foreign {

/// A TOML document, with dates as text. `where`: the file, for errors. Errc::malformed names the line.
[[nodiscard]] Result<Value> read_toml(std::string_view content, const std::string& where);

}  // namespace shard::foreign
