// One place that knows all communicators of processes.
#include "executor/commands/join_ranks.h"

#include "executor/comm/in_process.h"
#include "executor/comm/tcp.h"
#ifdef SHARDSCOPE_MPI
#include "executor/comm/mpi.h"
#endif
#include "executor/commands/device_train.h"
#include "executor/launch/meeting_place.h"
#include "sim/cli/contradiction.h"
#include "traces/base/deadline.h"

namespace shard::commands {
namespace {

Result<std::unique_ptr<Communicator>> join_over_tcp(const Role& role, CommOptions options) {
  Result<MeetingPlace> place = meeting_place(role);
  if (!place) return place.error();
  return make_tcp({.rank = role.rank,
                   .world = role.world,
                   .address = place->address,
                   .port = place->port,
                   .job = place->job,
                   .plan = {}},
                  options);
}

/// Collectives over TCP are staged in memory of the plan.
Result<void> choose_messages(const cli::Command& command, const Role& role, TrainOptions& options) {
  plan::Strategy& s = options.strategy.chosen;
  if (s.transport == plan::Transport::messages) return {};
  if (command.given("transport"))
    return cli::contradiction(command.describe("transport") + " needs ranks that share memory, and those of " +
                                  to_string(role.launcher) + " speak over TCP",
                              "--transport messages, or leave it out");
  s.transport = plan::Transport::messages;
  return {};
}

}  // namespace

Result<void> may_start_ranks() {
#ifdef SHARDSCOPE_MPI
  return {};
#else
  return Error{.code = Errc::unavailable,
               .what = "this program was built without MPI, over which it starts several ranks",
               .where = "launcher",
               .help =
                   "torchrun --no-python --nproc-per-node N shardscope train ..., whose ranks speak over TCP; or "
                   "apt-get install libopenmpi-dev openmpi-bin, and build again"};
#endif
}

bool meets_over_tcp(const Role& role) {
  return role.launcher != Launcher::none && !role.brings_mpi && role.world > 1;
}

Result<void> take_world(const cli::Command& command, const Role& role, int ranks, TrainOptions& options) {
  plan::Strategy& s = options.strategy.chosen;
  if (command.given("world-size") && s.world_size != ranks) {
    const std::string by = role.world_said_by.empty() ? "" : " (" + role.world_said_by + ")";
    return cli::contradiction(command.describe("world-size") + ", but " + to_string(role.launcher) + " started " +
                                  std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + by,
                              "leave --ranks out under a launcher");
  }
  s.world_size = ranks;
  if (s.device == plan::Device::cuda && ranks > 1) return choose_transport(command, options);
  if (meets_over_tcp(role)) return choose_messages(command, role, options);
  return {};
}

Result<std::unique_ptr<Communicator>> join_ranks(const Role& role, const TrainOptions& o) {
  const CommOptions options{.deadline = deadline_of(o.timeout_seconds)};
  if (meets_over_tcp(role)) return join_over_tcp(role, options);
  if (!role.brings_mpi) return make_single(options);
#ifdef SHARDSCOPE_MPI
  const bool messages = o.strategy.chosen.transport == plan::Transport::messages;
  return make_mpi(messages ? MpiTransport::messages : MpiTransport::shared, options);
#else
  return may_start_ranks().error();
#endif
}

}  // namespace shard::commands
