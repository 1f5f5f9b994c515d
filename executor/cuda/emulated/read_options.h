// How an emulated device is told what to do, in words: for development, from the environment.
#pragma once

#include <string_view>

#include "executor/cuda/emulated/emulated.h"

namespace shard::cuda {

/// The variable that programs read.
inline constexpr const char* kEmulatedVariable = "SHARDSCOPE_EMULATED_DEVICE";

/// Adds to `options` what a list says: "seed=5,as_enqueued,error=copy:3,hang=launch:100" (the third copy fails; what
/// the hundredth launch enqueues never finishes; with devices=4 of four devices, on the last of them; with card=8.6
/// blocks are refused that such a card would refuse). Errc::usage naming the word that is not understood.
[[nodiscard]] Result<EmulatedOptions> read_emulated_options(std::string_view words, EmulatedOptions options);

}  // namespace shard::cuda
