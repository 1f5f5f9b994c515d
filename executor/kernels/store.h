// Whether a kernel's output replaces or is added to what the buffer holds.
#pragma once

#include <cstdint>

namespace shard {

enum class Store : std::uint8_t {
  write,  ///< out = value; what was there before is not read
  add,    ///< out = out + value, rounded once per element
};

}  // namespace shard
