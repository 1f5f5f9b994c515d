// The command line and environment with which Open MPI's mpirun starts ranks on this machine, quietly.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace shard {

struct MpirunPlaces {
  std::string session;  ///< for session directories
  std::string memory;   ///< for files behind shared memory; empty: Open MPI's default
  std::string socket;   ///< where the parent listens
};

/// `program` is the argument vector of one rank.
[[nodiscard]] std::vector<std::string> mpirun_arguments(const std::string& mpirun, std::span<const std::string> program,
                                                        int ranks, const MpirunPlaces& places);

/// This process's environment without what would make mpirun think that it is inside a cluster allocation or another
/// job, and with what lets it run as root.
[[nodiscard]] std::vector<std::string> mpirun_environment(const MpirunPlaces& places);

/// The first executable `name` in PATH, or "".
[[nodiscard]] std::string find_in_path(const std::string& name);

}  // namespace shard
