// Who this process is: alone, or one of the ranks that a launcher started. Read from the environment only.
#pragma once

#include <optional>
#include <string>

#include "traces/base/ids.h"
#include "traces/base/result.h"

namespace shard {

enum class Launcher {
  none,      ///< started by a user: one rank, or the parent of ranks still to be started
  own,       ///< a rank that run_job started
  open_mpi,  ///< a rank under a foreign mpirun
  slurm,     ///< a rank under srun
  pmi,       ///< a rank under another launcher that speaks PMI or PMIx
  torchrun,  ///< a rank under torchrun, or whatever else sets its variables
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
  int world = 1;                  ///< under PMIx alone a lower bound: MPI knows
  std::string world_said_by{};    ///< the variable
  std::optional<int> local_rank;  ///< which of its machine's ranks this is, where the launcher says so
  bool brings_mpi = false;        ///< MPI finds the other ranks; else they meet over TCP (meeting_place.h)
  std::string parent{};           ///< Launcher::own: the socket of the parent
};

/// By the first row of one table whose variables are all there (role.cpp):
///
///   who          by                       rank                   of                     of its machine
///   own          SHARDSCOPE_PARENT        OMPI_COMM_WORLD_RANK   OMPI_COMM_WORLD_SIZE   OMPI_COMM_WORLD_LOCAL_RANK
///   torchrun     TORCHELASTIC_RUN_ID      RANK                   WORLD_SIZE             LOCAL_RANK
///   mpirun                                OMPI_COMM_WORLD_RANK   OMPI_COMM_WORLD_SIZE   OMPI_COMM_WORLD_LOCAL_RANK
///   srun                                  SLURM_PROCID           SLURM_STEP_NUM_TASKS   SLURM_LOCALID
///   pmi                                   PMI_RANK               PMI_SIZE               MPI_LOCALRANKID
///   pmi                                   PMIX_RANK              -                      -
///   torchrun                              RANK                   WORLD_SIZE             LOCAL_RANK
///
/// torchrun stands before the launchers that people start it with. A batch script alone is no rank. srun brings MPI
/// where PMI_FD, PMI_RANK, PMIX_RANK or PMIX_NAMESPACE is set (srun --mpi=pmi2, pmix).
///
/// Errc::contradiction naming the variable of that row that says no number, or one that no rank or world can have: who
/// went on without it would train alone, beside the others.
[[nodiscard]] Result<Role> role_from_environment();

/// "4 by torchrun, this is rank 2, local rank 2".
[[nodiscard]] std::string describe(const Role& role);

/// The variable by which run_job tells its ranks where the parent listens.
inline constexpr const char* kParentVariable = "SHARDSCOPE_PARENT";

}  // namespace shard
