// What one rank has inspected, decided and stepped in a step whose gradients are controlled. Rule P26.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/check/fault.h"
#include "sim/check/gradient_nodes.h"

namespace shard::plan::verification {

/// Messages are what is wrong, nothing where all is right. Ranges are elements of a flat.
class ControlBook {
 public:
  void begin() { *this = ControlBook(); }
  /// Ranges that were inspected, of those that are stepped.
  [[nodiscard]] std::uint64_t stepped() const { return inspected_.size(); }
  /// Inspections of local gradients.
  [[nodiscard]] std::uint64_t local() const { return local_count_; }
  /// Of all inspections so far: facts that were sent before a later one are out of date.
  [[nodiscard]] std::uint64_t version() const { return stepped() + local(); }

  [[nodiscard]] std::optional<std::string> inspect(std::int32_t flat, Range range) {
    if (decided_) return "inspects a gradient after the decision";
    for (const auto& [f, begin, end, used] : inspected_)
      if (f == flat && begin < range.end && range.begin < end)
        return "inspects elements " + to_string(range) + " a second time";
    inspected_.emplace_back(flat, range.begin, range.end, false);
    return {};
  }
  void inspect_local(std::int32_t flat, Node gradient) {
    ++local_count_;
    local_[flat] = gradient;
  }
  /// Whether this rank's own gradient was inspected as it is.
  [[nodiscard]] bool knows_local(std::int32_t flat, Node gradient) const {
    const auto it = local_.find(flat);
    return it != local_.end() && it->second == gradient;
  }
  void decide() { decided_ = true; }
  [[nodiscard]] bool decided() const { return decided_; }
  [[nodiscard]] std::optional<std::string> step(std::int32_t flat, Range range) {
    for (auto& [f, begin, end, used] : inspected_)
      if (f == flat && begin == range.begin && end == range.end) {
        used = true;
        return {};
      }
    return "steps elements " + to_string(range) + " of flat " + std::to_string(flat) + ", which were not inspected";
  }
  /// Every range that was inspected must have been stepped: what others step they inspect.
  [[nodiscard]] std::optional<std::string> end() const {
    if (!decided_) return "the step ends without a decision";
    for (const auto& [f, begin, end, used] : inspected_)
      if (!used)
        return "elements " + to_string({begin, end}) + " of flat " + std::to_string(f) +
               " were inspected and not stepped";
    return {};
  }

 private:
  std::vector<std::tuple<std::int32_t, std::int64_t, std::int64_t, bool>> inspected_;
  std::map<std::int32_t, Node> local_;  ///< by flat, the last
  std::uint64_t local_count_ = 0;
  bool decided_ = false;
};

}  // namespace shard::plan::verification
