// What a dry run tells: memory of each rank, who held it, and what it could not see.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profiler/dryrun/dry_run.h"
#include "sim/cluster/verdict.h"
#include "traces/holders.h"

namespace shard::dryrun {

/// The card that is stood in for, and what such a process takes of it beside PyTorch's allocator.
struct Card {
  Place place;
  cluster::ByteRange outside;
  [[nodiscard]] cluster::Room room() const { return {.capacity = Bytes{place.device_bytes}, .outside = outside}; }
};

/// The peak of a part of the run, what was there before it included.
struct PhaseAnswer {
  Phase phase{};
  std::int64_t allocated_bytes = 0;
  std::int64_t time_ns = 0;  ///< on the recording's clock
  std::string most_by{};     ///< the line that held most of it; empty where no stack was kept
};

/// What a recording says.
struct Answer {
  std::int64_t allocated_bytes = 0, reserved_bytes = 0, begin_ns = 0;
  Held held;
  std::vector<PhaseAnswer> phases;  ///< as they began for the first time; those that took memory
};

/// A rank's run and its answer; none where it used no GPU, or was killed.
struct RankRun {
  DryRun run;
  std::optional<Answer> answer;
};

[[nodiscard]] Result<RankRun> answered(DryRun run, HeldBy by);

/// Of a program that was killed, what it took of the card; the recording went with it.
[[nodiscard]] std::int64_t reserved_bytes(const RankRun& rank);

/// All ranks that ran. Those that took less have no recording any more.
struct DryRuns {
  std::vector<RankRun> ranks;
  std::size_t most = 0;  ///< the one that took most, or ran out of memory
  [[nodiscard]] const RankRun& worst() const { return ranks[most]; }

  void add(RankRun rank);
};

/// `top`: so many of the largest holders.
[[nodiscard]] nlohmann::ordered_json to_json(const DryRuns& runs, const Card& card, std::size_t top);
[[nodiscard]] std::string to_text(const DryRuns& runs, const Card& card, std::size_t top);

}  // namespace shard::dryrun
