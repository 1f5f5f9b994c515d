// The variables of Open MPI's FAQ, slurm's srun(1), PMI-1 and torch.distributed.run.
#include "executor/launch/role.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace shard {
namespace {

std::optional<int> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Role role_from_environment() {
  const auto as = [](Launcher launcher, std::optional<int> rank, std::optional<int> world) {
    return Role{launcher, Rank{rank.value_or(0)}, world.value_or(1), {}};
  };
  if (const auto rank = number("OMPI_COMM_WORLD_RANK"), world = number("OMPI_COMM_WORLD_SIZE"); rank && world) {
    const char* parent = std::getenv(kParentVariable);
    Role role = as(parent != nullptr ? Launcher::own : Launcher::open_mpi, rank, world);
    if (parent != nullptr) role.parent = parent;
    return role;
  }
  if (const auto rank = number("SLURM_PROCID"), world = number("SLURM_STEP_NUM_TASKS"); rank && world)
    return as(Launcher::slurm, rank, world);
  if (const auto rank = number("PMI_RANK"), world = number("PMI_SIZE"); rank && world)
    return as(Launcher::pmi, rank, world);
  if (const auto rank = number("PMIX_RANK")) return as(Launcher::pmi, rank, rank.value() + 1);
  if (const auto rank = number("RANK"), world = number("WORLD_SIZE"); rank && world)
    return as(Launcher::torchrun, rank, world);
  return {};
}

}  // namespace shard
