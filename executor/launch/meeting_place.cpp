// torch.distributed.run's environment (its docs: "Environment Variables"), and srun(1)'s.
#include "executor/launch/meeting_place.h"

#include <charconv>
#include <cstdlib>
#include <optional>

namespace shard {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : std::string(text);
}

/// Nothing where it is not set.
Result<std::optional<int>> port_in(const char* name) {
  const std::string text = variable(name);
  if (text.empty()) return std::optional<int>();
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || value < 1 || value > 65535)
    return Error{Errc::unavailable, std::string(name) + " is no port: '" + text + "'", "launcher", "1 to 65535"};
  return std::optional<int>(value);
}

std::string address_of(const Role& role) {
  const bool slurm = role.launcher == Launcher::slurm;
  const std::string here = variable(slurm ? "SLURM_STEP_NUM_NODES" : "LOCAL_WORLD_SIZE");
  if (here == (slurm ? "1" : std::to_string(role.world))) return kLoopback;
  if (const std::string given = variable("MASTER_ADDR"); !given.empty()) return given;
  if (!slurm) return {};
  for (const char* nodes : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (const std::string host = first_host(variable(nodes)); !host.empty()) return host;
  return variable("SLURM_LAUNCH_NODE_IPADDR");
}

Result<int> port_of(const Role& role) {
  const Result<std::optional<int>> own = port_in(kPortVariable);
  if (!own) return own.error();
  if (*own) return **own;
  const Result<std::optional<int>> master = port_in("MASTER_PORT");
  if (!master) return master.error();
  if (*master) {
    if (variable("TORCHELASTIC_USE_AGENT_STORE") != "True") return **master;
    return **master == 65535 ? 65534 : **master + 1;
  }
  if (role.launcher == Launcher::slurm) {
    // Below the ports that the system gives to others.
    const long job = std::atol(variable("SLURM_JOB_ID").c_str());
    const long step = std::atol(variable("SLURM_STEP_ID").c_str());
    return 20000 + static_cast<int>((job * 37 + step) % 10000);
  }
  return Error{Errc::unavailable, "MASTER_PORT is not set, so ranks cannot find each other", "launcher",
               "MASTER_ADDR=HOST MASTER_PORT=N for all ranks, as torchrun sets them"};
}

}  // namespace

std::string first_host(std::string_view nodes) {
  std::string host;
  for (std::size_t at = 0; at < nodes.size() && nodes[at] != ','; ++at) {
    if (nodes[at] != '[') {
      host += nodes[at];
      continue;
    }
    const std::size_t end = nodes.find_first_of("-,]", at);
    if (end == std::string_view::npos) return {};
    host.append(nodes.substr(at + 1, end - at - 1));
    at = nodes.find(']', at);
    if (at == std::string_view::npos) return {};
  }
  return host;
}

Result<MeetingPlace> meeting_place(const Role& role) {
  if (role.rank.value >= role.world)
    return Error{Errc::contradiction,
                 "this is rank " + std::to_string(role.rank.value) + ", and " + role.world_said_by + " is " +
                     std::to_string(role.world),
                 "launcher", "ranks from 0 to " + role.world_said_by + " - 1"};
  MeetingPlace place{.address = address_of(role), .port = 0, .job = {}};
  if (place.address.empty())
    return Error{Errc::unavailable, "MASTER_ADDR is not set, so ranks cannot find each other", "launcher",
                 "MASTER_ADDR=HOST MASTER_PORT=N for all ranks, as torchrun sets them"};
  const Result<int> port = port_of(role);
  if (!port) return port.error();
  place.port = static_cast<std::uint16_t>(*port);
  place.job = role.launcher == Launcher::slurm
                  ? variable("SLURM_JOB_ID") + "." + variable("SLURM_STEP_ID")
                  : variable("TORCHELASTIC_RUN_ID") + "." + variable("TORCHELASTIC_RESTART_COUNT");
  return place;
}

}  // namespace shard
