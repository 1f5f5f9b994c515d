// The variables of Open MPI's FAQ, slurm's srun(1), PMI-1, Hydra and torch.distributed.run.
#include "executor/launch/role.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace shard {
namespace {

struct Row {
  Launcher launcher = Launcher::none;
  const char* by = nullptr;  ///< a variable that must be there, too
  const char* rank = nullptr;
  const char* world = nullptr;
  const char* local_rank = nullptr;
};

constexpr Row kTable[] = {
    {Launcher::own, kParentVariable, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {Launcher::torchrun, "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {Launcher::open_mpi, nullptr, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {Launcher::slurm, nullptr, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    {Launcher::pmi, nullptr, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {Launcher::pmi, nullptr, "PMIX_RANK", nullptr, nullptr},
    {Launcher::torchrun, nullptr, "RANK", "WORLD_SIZE", "LOCAL_RANK"},
};

bool is_set(const char* variable) {
  return variable != nullptr && std::getenv(variable) != nullptr;
}

/// Of a variable that is set.
Result<int> number(const char* variable, int least, Launcher launcher) {
  const std::string text = std::getenv(variable);
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && stop == end && value >= least) return value;
  return Error{Errc::contradiction,
               std::string(variable) + " of the environment is '" + text + "', which is no whole number from " +
                   std::to_string(least) + " to " + std::to_string(std::numeric_limits<int>::max()),
               "launcher", std::string(variable) + "=N, as " + to_string(launcher) + " sets it; or unset " + variable};
}

bool brings_mpi(Launcher launcher) {
  if (launcher == Launcher::none || launcher == Launcher::torchrun) return false;
  if (launcher != Launcher::slurm) return true;
  constexpr const char* kSpokenTo[] = {"PMI_FD", "PMI_RANK", "PMIX_RANK", "PMIX_NAMESPACE"};
  return std::ranges::any_of(kSpokenTo, [](const char* variable) { return std::getenv(variable) != nullptr; });
}

}  // namespace

Result<Role> role_from_environment() {
  for (const Row& row : kTable) {
    if (row.by != nullptr && !is_set(row.by)) continue;
    if (!is_set(row.rank) || (row.world != nullptr && !is_set(row.world))) continue;
    const Result<int> rank = number(row.rank, 0, row.launcher);
    if (!rank) return rank.error();
    const Result<int> world = row.world == nullptr ? Result<int>(*rank + 1) : number(row.world, 1, row.launcher);
    if (!world) return world.error();
    Role role{.launcher = row.launcher,
              .rank = Rank{*rank},
              .world = *world,
              .world_said_by = row.world == nullptr ? "" : row.world,
              .local_rank = std::nullopt,
              .brings_mpi = brings_mpi(row.launcher)};
    if (is_set(row.local_rank)) {
      const Result<int> local = number(row.local_rank, 0, row.launcher);
      if (!local) return local.error();
      role.local_rank = *local;
    }
    if (row.launcher == Launcher::own) role.parent = std::getenv(kParentVariable);
    return role;
  }
  return Role{};
}

std::string describe(const Role& role) {
  std::string text = std::to_string(role.world) + " by " + to_string(role.launcher) + ", this is rank " +
                     std::to_string(role.rank.value);
  if (role.local_rank) text += ", local rank " + std::to_string(*role.local_rank);
  return text;
}

}  // namespace shard
