// Functions of this library by their names.
#pragma once

namespace shard::standin {

/// What this library has of that name; nullptr where it has nothing.
[[nodiscard]] void* own_function(const char* name);

}  // namespace shard::standin
