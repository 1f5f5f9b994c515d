// What other tools call our options: DeepSpeed, Megatron, Hugging Face, torchrun, nanoGPT.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shard::cli {

/// Our option of that meaning, without dashes, with its value where that is part of it ("precision bf16"); empty for
/// none. '-' and '_' are alike.
[[nodiscard]] std::string_view own_option(std::string_view foreign);

/// The one command that has our option `ours`; empty where every command that trains has it.
[[nodiscard]] std::string_view command_of(std::string_view ours);

/// What is counted there, where other tools count something else: ": sequences of ..."; empty for most.
[[nodiscard]] std::string_view meaning_of(std::string_view ours);

/// Of what people ask for and no command models: that, and who answers instead. Empty for all else.
[[nodiscard]] std::string not_modelled(std::string_view foreign);

/// The same for names that mean exactly this here, and so are taken and not only hinted at.
[[nodiscard]] std::string_view same_option(std::string_view foreign);

/// Other tools' words for values of ours: "cuda" where model data rests is our "device", "HybridAdam" our "adamw".
/// `text` itself where `known` has it, or where no word of `known` means the same.
[[nodiscard]] std::string own_word(std::string_view text, std::span<const std::string> known);

}  // namespace shard::cli
