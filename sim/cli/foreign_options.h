// What other tools call our options: DeepSpeed, Megatron, Hugging Face, torchrun, nanoGPT.
#pragma once

#include <string_view>

namespace shard::cli {

/// Our option of that meaning, without dashes, with its value where that is part of it ("precision bf16"); empty for
/// none. '-' and '_' are alike.
[[nodiscard]] std::string_view own_option(std::string_view foreign);

}  // namespace shard::cli
