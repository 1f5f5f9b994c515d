// Is every launcher recognised by its environment, and a plain shell or a batch script by the lack of it?
#include "executor/launch/role.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "executor/launch/meeting_place.h"
#include "executor/launch/mpirun_command.h"
#include "traces/base/scratch.h"

namespace shard::test {
namespace {

Result<Role> read_with(const std::map<std::string, std::string>& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID",
                           "SLURM_PROCID",
                           "SLURM_STEP_NUM_TASKS",
                           "SLURM_LOCALID",
                           "SLURM_NTASKS",
                           "SLURM_STEP_NODELIST",
                           "SLURM_JOB_NODELIST",
                           "SLURM_LAUNCH_NODE_IPADDR",
                           "SLURM_STEP_NUM_NODES",
                           "SLURM_JOB_ID",
                           "SLURM_STEP_ID",
                           "PMI_FD",
                           "PMI_RANK",
                           "PMI_SIZE",
                           "PMIX_RANK",
                           "PMIX_NAMESPACE",
                           "RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_USE_AGENT_STORE",
                           "TORCHELASTIC_RESTART_COUNT",
                           kPortVariable,
                           kParentVariable})
    unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  return role_from_environment();
}

Role role_with(const std::map<std::string, std::string>& environment) {
  const Result<Role> role = read_with(environment);
  if (!role) ADD_FAILURE() << to_string(role.error());
  return role ? *role : Role{};
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

TEST(Role, TheInnerOfTwoLaunchersCounts) {
  const std::map<std::string, std::string> torchrun_under_srun{
      {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"TORCHELASTIC_RUN_ID", "x"},
      {"RANK", "5"},         {"WORLD_SIZE", "8"},           {"LOCAL_RANK", "1"}};
  const Role inner = role_with(torchrun_under_srun);
  expect(inner, Launcher::torchrun, 5, 8);
  EXPECT_EQ(describe(inner), "8 by torchrun, this is rank 5, local rank 1");
  // Scripts for PyTorch say mpirun's numbers once more.
  expect(role_with({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}}),
         Launcher::open_mpi, 1, 2);
}

TEST(Role, KnowsTheLocalRankAndWhetherThereIsMpi) {
  const Role mpirun =
      role_with({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_EQ(mpirun.local_rank, 0);
  EXPECT_TRUE(mpirun.brings_mpi);
  EXPECT_EQ(role_with({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).local_rank, std::nullopt);
  std::map<std::string, std::string> srun{{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}};
  EXPECT_FALSE(role_with(srun).brings_mpi);
  EXPECT_EQ(role_with(srun).local_rank, 1);
  srun["PMIX_RANK"] = "3";
  EXPECT_TRUE(role_with(srun).brings_mpi);
}

std::string place_with(const std::map<std::string, std::string>& environment) {
  const Result<MeetingPlace> place = meeting_place(role_with(environment));
  if (!place) return place.error().what;
  return place->address + ":" + std::to_string(place->port) + " " + place->job;
}

TEST(MeetingPlace, OfTorchrunLeavesTheAgentItsPort) {
  std::map<std::string, std::string> torchrun{
      {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(place_with(torchrun), "node1:29500 .");
  torchrun["TORCHELASTIC_RUN_ID"] = "a";
  torchrun["TORCHELASTIC_RESTART_COUNT"] = "3";
  torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(place_with(torchrun), "node1:29501 a.3");
  torchrun["MASTER_PORT"] = "65535";
  EXPECT_EQ(place_with(torchrun), "node1:65534 a.3");
  torchrun[kPortVariable] = "1234";
  EXPECT_EQ(place_with(torchrun), "node1:1234 a.3");
  torchrun["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_EQ(place_with(torchrun), "node1:1234 a.3");
  torchrun["LOCAL_WORLD_SIZE"] = "4";
  EXPECT_EQ(place_with(torchrun), "127.0.0.1:1234 a.3");
}

TEST(MeetingPlace, OfSrunIsOnItsFirstNode) {
  std::map<std::string, std::string> srun{{"SLURM_PROCID", "3"},
                                          {"SLURM_STEP_NUM_TASKS", "8"},
                                          {"SLURM_JOB_ID", "100"},
                                          {"SLURM_STEP_ID", "2"},
                                          {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}};
  EXPECT_EQ(place_with(srun), "10.0.0.9:23702 100.2");
  srun["SLURM_JOB_NODELIST"] = "n[07-09],x";
  EXPECT_EQ(place_with(srun), "n07:23702 100.2");
  srun["SLURM_STEP_NODELIST"] = "m3,n1";
  EXPECT_EQ(place_with(srun), "m3:23702 100.2");
  srun["MASTER_ADDR"] = "other";
  srun["MASTER_PORT"] = "77";
  EXPECT_EQ(place_with(srun), "other:77 100.2");
  srun["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(place_with(srun), "127.0.0.1:77 100.2");
}

TEST(MeetingPlace, NamesWhatIsMissing) {
  EXPECT_EQ(place_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
            "MASTER_ADDR is not set, so ranks cannot find each other");
  EXPECT_EQ(place_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}}),
            "MASTER_PORT is not set, so ranks cannot find each other");
  EXPECT_EQ(place_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}, {kPortVariable, "0"}}),
            "SHARDSCOPE_PORT is no port: '0'");
  EXPECT_EQ(place_with({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "this is rank 2, and WORLD_SIZE is 2");
}

TEST(FirstHost, OfSlurmsShortForm) {
  EXPECT_EQ(first_host("node[003-007,9],x"), "node003");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("rack[1-2]n[5,6]"), "rack1n5");
  EXPECT_EQ(first_host("n[4]-ib"), "n4-ib");
  for (const char* bad : {"", "n[", "n[1", "n[1-2"}) EXPECT_EQ(first_host(bad), "");
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

// Who went on as if the launcher had said nothing would train alone.
TEST(Role, NoNumberIsRefusedByTheVariablesName) {
  const auto refused = [](std::map<std::string, std::string> environment, const std::string& variable,
                          const std::string& text) {
    environment[variable] = text;
    const Result<Role> role = read_with(environment);
    ASSERT_FALSE(role.has_value()) << variable << "=" << text;
    EXPECT_EQ(role.error().code, Errc::contradiction);
    EXPECT_TRUE(role.error().what.starts_with(variable + " of the environment is '" + text + "'")) << role.error().what;
  };
  struct Names {
    const char* rank;
    const char* world;
    const char* local;
  };
  for (const Names& each : {Names{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
                            Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                            Names{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
                            Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}}) {
    const std::map<std::string, std::string> right{{each.rank, "0"}, {each.world, "2"}};
    for (const std::string text : {"x", "", "-1", "1.5", "2 ", "99999999999"}) {
      refused(right, each.rank, text);
      refused(right, each.world, text);
      refused(right, each.local, text);
    }
    refused(right, each.world, "0");
  }
  refused({}, "PMIX_RANK", "x");
}

// A shell may have one of them for reasons of its own.
TEST(Role, OneVariableAloneIsNoLauncher) {
  expect(role_with({{"RANK", "first"}}), Launcher::none, 0, 1);
  expect(role_with({{"WORLD_SIZE", "0"}}), Launcher::none, 0, 1);
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
