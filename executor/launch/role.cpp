// The variables of Open MPI's FAQ, slurm's srun(1), PMI-1, Hydra and torch.distributed.run.
#include "executor/launch/role.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

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

std::optional<int> number(const char* variable) {
  const char* text = variable == nullptr ? nullptr : std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || value < 0) return std::nullopt;
  return value;
}

bool brings_mpi(Launcher launcher) {
  if (launcher == Launcher::none || launcher == Launcher::torchrun) return false;
  if (launcher != Launcher::slurm) return true;
  constexpr const char* kSpokenTo[] = {"PMI_FD", "PMI_RANK", "PMIX_RANK", "PMIX_NAMESPACE"};
  return std::ranges::any_of(kSpokenTo, [](const char* variable) { return std::getenv(variable) != nullptr; });
}

}  // namespace

Role role_from_environment() {
  for (const Row& row : kTable) {
    if (row.by != nullptr && std::getenv(row.by) == nullptr) continue;
    const std::optional<int> rank = number(row.rank);
    const std::optional<int> world = row.world == nullptr && rank ? std::optional(*rank + 1) : number(row.world);
    if (!rank || !world) continue;
    Role role{.launcher = row.launcher,
              .rank = Rank{*rank},
              .world = *world,
              .world_said_by = row.world == nullptr ? "" : row.world,
              .local_rank = number(row.local_rank),
              .brings_mpi = brings_mpi(row.launcher)};
    if (row.launcher == Launcher::own) role.parent = std::getenv(kParentVariable);
    return role;
  }
  return {};
}

std::string describe(const Role& role) {
  std::string text = std::to_string(role.world) + " by " + to_string(role.launcher) + ", this is rank " +
                     std::to_string(role.rank.value);
  if (role.local_rank) text += ", local rank " + std::to_string(*role.local_rank);
  return text;
}

}  // namespace shard
