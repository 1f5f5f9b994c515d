// What one other option would save: each lever is a second simulation, never an estimate.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::commands {

/// One option more than what was asked, and the highest peak of a rank then.
struct Lever {
  std::string option;  ///< as it is typed: "--recompute block"
  Bytes peak;
  Bytes saved;
};

/// What levers start from.
struct LeverBase {
  std::span<const std::string> arguments;
  Bytes peak;
  std::int64_t micro_batch = 1;
};

/// Every option that lowers the peak, the one that saves most first. `peak_of` simulates a command line; where it
/// contradicts itself or what is modelled, or does not know the option, there is no such lever.
[[nodiscard]] std::vector<Lever> find_levers(
    const LeverBase& base, const std::function<Result<Bytes>(const std::vector<std::string>& arguments)>& peak_of);

/// [{"option", "peak_bytes", "saved_bytes"}]
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<Lever>& levers);
[[nodiscard]] std::string to_text(const std::vector<Lever>& levers);

}  // namespace shard::commands
