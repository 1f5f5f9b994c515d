// SHA-256 (FIPS 180-4) of a text, for names of content; not for secrets.
#pragma once

#include <string>
#include <string_view>

namespace shard {

/// 64 lower-case hexadecimal digits. The time is that of a few nanoseconds per byte.
[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace shard
