// The SHA-256 of a run's state: one number that says whether two strategies trained to the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

namespace shard {

/// Collects SHA-256 of each (parameter, content) and combines them in canonical order: parameters in registration
/// order; value, first moment, second moment. So neither units nor order of arrival matter.
class StateDigest {
 public:
  /// content: 0 value, 1 first moment, 2 second moment; bytes: all of the parameter's elements, fp32.
  void add(std::int32_t param, int content, std::span<const std::byte> bytes);

  /// Hex over everything added, and the number of steps taken.
  [[nodiscard]] std::string finish(std::int64_t steps) const;

 private:
  std::map<std::pair<std::int32_t, int>, std::string> parts_;
};

/// The 32 bytes of SHA-256 itself.
[[nodiscard]] std::string sha256_of(std::span<const std::byte> bytes);

/// Hex over the numbers of the parts of a model that tensor-parallel ranks hold, in rank order.
[[nodiscard]] std::string digest_of_parts(std::span<const std::string> parts);

}  // namespace shard
