// Options that other frameworks do not have, refused beside --like.
#include "sim/commands/like_options.h"

#include <string>

#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

constexpr const char* kOurs[] = {"tensor-parallel",
                                 "tensor-parallel-layout",
                                 "transport",
                                 "threads",
                                 "shard-group",
                                 "fp32-reduce-scatter",
                                 "clip-norm",
                                 "gradient-predivide-factor",
                                 "initial-scale",
                                 "min-scale",
                                 "max-scale",
                                 "growth-factor",
                                 "backoff-factor",
                                 "growth-interval",
                                 "hysteresis",
                                 "freeze",
                                 "dropout",
                                 "placement",
                                 "param-placement",
                                 "grad-placement",
                                 "optimizer-placement",
                                 "host-capacity",
                                 "disk-path",
                                 "gpu-margin-mem-ratio",
                                 "from-trace",
                                 "chunk-owner",
                                 "distributed-storage",
                                 "keep-gathered",
                                 "reuse-fp16-shard",
                                 "reduce-scatter-bucket-size-mb"};

}  // namespace

Error no_meaning_for_like(const cli::Command& command, const char* option, const char* why) {
  return cli::contradiction(command.describe(option) + " has no meaning for " + command.describe("like") + ": " + why,
                            std::string("leave --") + option + " out");
}

Result<void> refuse_own_options(const cli::Command& command, std::initializer_list<const char*> options) {
  constexpr const char* kWhy = "that is for our own strategies";
  for (const char* option : options)
    if (command.given(option)) return no_meaning_for_like(command, option, kWhy);
  for (const char* option : kOurs)
    if (command.given(option)) return no_meaning_for_like(command, option, kWhy);
  return {};
}

}  // namespace shard::commands
