// Whose run a command line means: the framework that --like names, the one whose configuration was read, the one that
// people train such a model with on GPUs, or our own executor.
#pragma once

#include <string>

#include "sim/cluster/cluster.h"
#include "sim/like/frameworks/framework.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::commands {

struct WhoseMemory {
  const like::Framework* framework = nullptr;  ///< null: our own executor's
  bool asked = false;                          ///< by --like: what its rules do not answer is an error
};

/// `like` is what --like says, `configured` the framework of a configuration that was read; either may be empty.
/// Without --like a configuration counts on GPUs, and a Hugging Face model on GPUs is PyTorch's: one rank pytorch,
/// stage 0 ddp, 1 and 2 deepspeed, 3 fsdp2. `model` may be null where there is only a list of parameters. Errc::usage
/// for an unknown name.
[[nodiscard]] Result<WhoseMemory> whose_memory(const std::string& like, const std::string& configured,
                                               const cluster::Cluster& cluster, const model::Model* model,
                                               const plan::Strategy& strategy);

}  // namespace shard::commands
