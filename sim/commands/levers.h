// What one other option would save: each lever is a second simulation, never an estimate.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/cluster/verdict.h"
#include "traces/base/ids.h"
#include "traces/base/numbers.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::commands {

/// What a command line takes, of the memory that is to be lowered.
struct LeverAnswer {
  Bytes peak;  ///< of the rank that has most; of a host's memory, of all its ranks
  cluster::Verdict verdict{};
  double tokens_per_second = 0;      ///< 0: not known
  std::optional<Memory> short_of{};  ///< where it does not fit: what there is too little of
};

/// One option more than what was asked, and the peak then.
struct Lever {
  std::string option;  ///< as it is typed: "--recompute block"
  Bytes peak;
  Bytes saved;
  Memory memory{};                   ///< whose peak
  cluster::Verdict verdict{};        ///< of all memories: one may be lower for another that is too small
  std::optional<Memory> short_of{};  ///< where it does not fit: what there is too little of
  double faster = 0;                 ///< tokens per second beside what was asked: 0.5 is half as many; 0: not known
};

/// What levers start from.
struct LeverBase {
  Bytes peak;
  Memory memory = Memory::device;  ///< or Memory::host, pinned and pageable
  double tokens_per_second = 0;    ///< 0: not known
  std::int64_t micro_batch = 1;
  bool has_disk = false;  ///< --disk-path says where
};

/// Every option that lowers the peak, the one that saves most first. `answer_of` simulates what was asked with
/// these changes, by several threads; where that contradicts itself or what is modelled, or there is no such option,
/// there is no such lever.
[[nodiscard]] std::vector<Lever> find_levers(
    const LeverBase& base, const std::function<Result<LeverAnswer>(std::span<const cli::Change> changes)>& answer_of);

/// [{"option", "peak_bytes", "saved_bytes", "memory" ("device", "host"), "verdict", "relative_speed" or null}]
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<Lever>& levers);
/// All of them, a line each, under a heading.
[[nodiscard]] std::string to_text(const std::vector<Lever>& levers, ShowBytes show);
/// The one that saves most, as a line of the verdict; empty where none is known.
[[nodiscard]] std::string largest_text(const std::vector<Lever>& levers, bool fits, ShowBytes show);

}  // namespace shard::commands
