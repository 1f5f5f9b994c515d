// Functions that the stand-in does not know: success, and their names in the report.
#pragma once

namespace shard::standin {

/// For functions that are asked for by a pointer: their names were given when it was asked for.
long unknown_without_name();

}  // namespace shard::standin
