// A program's words that begin with a launcher, which starts its ranks: whose they are, and torchrun's read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shard::dryrun {

/// What torchrun would start.
struct LaunchLine {
  std::string launcher;              ///< as it was typed, for people
  std::vector<std::string> program;  ///< of each rank
  std::int64_t ranks_per_host = 1, hosts = 1;
  std::int64_t first_rank = 0;  ///< of this host
};

/// The launcher that the words begin with ("torchrun", "accelerate", ...): behind env and its variables, or as a module
/// of Python. Empty: none. What a program calls by itself nobody sees.
[[nodiscard]] std::string launcher_of(const std::vector<std::string>& program);

/// torchrun's words (also of torch.distributed.run and torch.distributed.launch), by its options in either spelling.
/// Nothing where it is none, or where its options are not ones that this reads. `devices`: of a host, which "gpu" and
/// "auto" are.
[[nodiscard]] std::optional<LaunchLine> read_torchrun(const std::vector<std::string>& program, std::int64_t devices);

}  // namespace shard::dryrun
