// Where ranks that a launcher started without MPI meet: rank 0's address and port, and what the run is called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "executor/launch/role.h"
#include "traces/base/result.h"

namespace shard {

struct MeetingPlace {
  std::string address;     ///< of rank 0's machine
  std::uint16_t port = 0;  ///< where rank 0 listens
  std::string job;         ///< what tells this run from another; may be empty
};

/// The variable by which a user says another port.
inline constexpr const char* kPortVariable = "SHARDSCOPE_PORT";

/// From the environment.
///
///   address   MASTER_ADDR; under srun without it the first host of SLURM_STEP_NODELIST or SLURM_JOB_NODELIST, else
///             SLURM_LAUNCH_NODE_IPADDR. The loopback where the launcher says that all ranks are on one machine.
///   port      SHARDSCOPE_PORT; else MASTER_PORT, or the one after it (before it, for 65535) where torchrun's agent has
///             MASTER_PORT for itself (TORCHELASTIC_USE_AGENT_STORE=True); under srun without it 20000 to 29999, out of
///             job and step
///   job       TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT, or SLURM_JOB_ID and SLURM_STEP_ID
///
/// Errc::unavailable naming the variable that is absent or no port; Errc::contradiction where the rank is none of its
/// world's.
[[nodiscard]] Result<MeetingPlace> meeting_place(const Role& role);

/// The first host of Slurm's short form: "node[003-007,9],x" is node003.
[[nodiscard]] std::string first_host(std::string_view nodes);

}  // namespace shard
