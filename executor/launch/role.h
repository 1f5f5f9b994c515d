// Who this process is: alone, or one of the ranks that a launcher started. Read from the environment only.
#pragma once

#include <string>

#include "traces/base/ids.h"

namespace shard {

enum class Launcher {
  none,      ///< started by a user: one rank, or the parent of ranks still to be started
  own,       ///< a rank that run_job started
  open_mpi,  ///< a rank under a foreign mpirun
  slurm,     ///< a rank under srun
  pmi,       ///< a rank under another launcher that speaks PMI or PMIx
  torchrun,  ///< a rank under torchrun, which brings no MPI: not supported by comm_mpi
};

[[nodiscard]] constexpr const char* to_string(Launcher launcher) {
  switch (launcher) {
    case Launcher::none: return "none";
    case Launcher::own: return "own";
    case Launcher::open_mpi: return "mpirun";
    case Launcher::slurm: return "srun";
    case Launcher::pmi: return "pmi";
    case Launcher::torchrun: return "torchrun";
  }
  return "?";
}

struct Role {
  Launcher launcher = Launcher::none;
  Rank rank{0};
  int world = 1;       ///< under PMIx alone a lower bound: MPI knows
  std::string parent;  ///< Launcher::own: the socket of the parent
};

/// Reads OMPI_COMM_WORLD_{RANK,SIZE}, SLURM_{PROCID,STEP_NUM_TASKS} (set by srun; a batch script alone is no rank),
/// PMIX_RANK or PMI_{RANK,SIZE}, torchrun's {RANK,WORLD_SIZE}, and run_job's own variable.
[[nodiscard]] Role role_from_environment();

/// The variable by which run_job tells its ranks where the parent listens.
inline constexpr const char* kParentVariable = "SHARDSCOPE_PARENT";

}  // namespace shard
