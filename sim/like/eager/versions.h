// What changed between PyTorch's releases, as far as memory shows it: a row a rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shard::like::eager {

/// major * 100 + minor: 211 is 2.11.
using Version = std::int32_t;
inline constexpr Version kNewest = 211;

/// "2.8".
[[nodiscard]] inline std::string to_text(Version version) {
  return std::to_string(version / 100) + "." + std::to_string(version % 100);
}

struct VersionRule {
  std::string_view what;
  Version from;  ///< the first release of which it holds; it holds of all behind it
  std::string_view source;
  [[nodiscard]] constexpr bool holds(Version version) const { return version >= from; }
};

/// Each thread keeps cuBLASLt's workspace. Before, every product took and gave back one of its own.
inline constexpr VersionRule kKeepsLtWorkspace{
    "cuBLASLt's workspace is kept", 209,
    "dry runs of 2.8.0, 2.9.1 and 2.10.0; aten/src/ATen/cuda/CUDABlas.cpp, _getUnifiedWorkspaceWithoutHandle"};

}  // namespace shard::like::eager
