// The readers behind the table of tools, each in its own file, and what tells a tool's files apart.
#pragma once

#include "sim/foreign/foreign_config.h"
#include "sim/foreign/reading.h"
#include "sim/foreign/tools.h"
#include "traces/base/result.h"

namespace shard::foreign {

[[nodiscard]] bool is_deepspeed(const Text& text);
[[nodiscard]] Result<ForeignConfig> read_deepspeed(const Text& text, const Given& given);
/// The table, for documents and for the key that a misspelt one is closest to.
[[nodiscard]] std::span<const Row> deepspeed_rows();

/// Configurations of Hugging Face accelerate, and files of the Trainer's --fsdp_config.
[[nodiscard]] bool is_accelerate(const Text& text);
[[nodiscard]] Result<ForeignConfig> read_accelerate(const Text& text, const Given& given);
[[nodiscard]] bool is_megatron(const Text& text);
[[nodiscard]] Result<ForeignConfig> read_megatron(const Text& text, const Given& given);
[[nodiscard]] bool is_torchtitan(const Text& text);
[[nodiscard]] Result<ForeignConfig> read_torchtitan(const Text& text, const Given& given);
[[nodiscard]] bool is_colossalai(const Text& text);
[[nodiscard]] Result<ForeignConfig> read_colossalai(const Text& text, const Given& given);

}  // namespace shard::foreign
