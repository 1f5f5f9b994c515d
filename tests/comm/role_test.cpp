// Is every launcher recognised by its environment, and a plain shell or a batch script by the lack of it?
#include "executor/launch/role.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "executor/launch/mpirun_command.h"
#include "traces/base/scratch.h"

namespace shard::test {
namespace {

Role role_with(const std::map<std::string, std::string>& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                           "SLURM_NTASKS", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "RANK", "WORLD_SIZE", kParentVariable})
    unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  return role_from_environment();
}

void expect(const Role& role, Launcher launcher, int rank, int world) {
  EXPECT_STREQ(to_string(role.launcher), to_string(launcher));
  EXPECT_EQ(role.rank, Rank{rank});
  EXPECT_EQ(role.world, world);
}

TEST(Role, IsReadFromTheLaunchersEnvironment) {
  expect(role_with({}), Launcher::none, 0, 1);
  expect(role_with({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), Launcher::open_mpi, 2, 4);
  expect(role_with({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}}), Launcher::slurm, 3, 8);
  expect(role_with({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), Launcher::pmi, 1, 2);
  expect(role_with({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), Launcher::torchrun, 1, 2);
}

TEST(Role, OfOurOwnRankKnowsTheParent) {
  const Role role =
      role_with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {kParentVariable, "/tmp/x/parent"}});
  expect(role, Launcher::own, 0, 2);
  EXPECT_EQ(role.parent, "/tmp/x/parent");
}

TEST(Role, ABatchScriptIsNoRank) {
  expect(role_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), Launcher::none, 0, 1);
}

TEST(Role, NonsenseIsIgnored) {
  expect(role_with({{"OMPI_COMM_WORLD_RANK", "-1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), Launcher::none, 0, 1);
  expect(role_with({{"RANK", "first"}, {"WORLD_SIZE", "4"}}), Launcher::none, 0, 1);
}

TEST(MpirunEnvironment, HidesTheClusterAndLetsRootRun) {
  setenv("SLURM_JOB_ID", "17", 1);
  setenv("SHARD_TEST_KEPT", "yes", 1);
  const std::vector<std::string> environment = mpirun_environment({"/s", "/m", "/s/parent"});
  const auto has = [&](std::string_view entry) {
    return std::any_of(environment.begin(), environment.end(),
                       [&](const std::string& one) { return one.starts_with(entry); });
  };
  EXPECT_FALSE(has("SLURM_"));
  EXPECT_TRUE(has("SHARD_TEST_KEPT=yes"));
  EXPECT_TRUE(has("OMPI_ALLOW_RUN_AS_ROOT=1"));
  EXPECT_TRUE(has("SHARDSCOPE_PARENT=/s/parent"));
  unsetenv("SLURM_JOB_ID");
}

TEST(Scratch, IsRemovedWithItsContentAndSparesThoseInUse) {
  namespace fs = std::filesystem;
  auto outer = Scratch::make(fs::temp_directory_path().string());
  ASSERT_TRUE(outer.has_value());
  const std::string place = outer->path();
  const std::string abandoned = place + "/.shardscope-ranks-abcdef";
  fs::create_directories(abandoned + "/deep");
  const std::string of_a_user = place + "/shardscope-demo";
  fs::create_directories(of_a_user);
  {
    const auto first = Scratch::make(place);
    EXPECT_FALSE(fs::exists(abandoned));
    ASSERT_TRUE(first.has_value());
    fs::create_directories(first->path() + "/deep");
    const auto second = Scratch::make(place);
    EXPECT_TRUE(fs::exists(first->path()));
  }
  EXPECT_TRUE(fs::remove(of_a_user));
  EXPECT_TRUE(fs::is_empty(place));
  outer.reset();
  EXPECT_FALSE(fs::exists(place));
}

}  // namespace
}  // namespace shard::test
