// What changed between the releases of PyTorch and of the libraries over it, as far as memory shows it: a row a rule;
// and which releases dry runs were compared with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shard::like::eager {

/// major * 100 + minor: 211 is 2.11. Of DeepSpeed, whose patches change rules, minor * 100 + patch: 1908 is 0.19.8.
using Version = std::int32_t;
/// Of PyTorch.
inline constexpr Version kNewest = 211;
/// The release that the tables of dry runs are of.
inline constexpr Version kUsualTransformers = 523;
inline constexpr Version kUsualDeepSpeed = 1908;

/// "2.8".
[[nodiscard]] inline std::string to_text(Version version) {
  return std::to_string(version / 100) + "." + std::to_string(version % 100);
}

enum class Library : std::uint8_t { pytorch, transformers, deepspeed, megatron };

/// "2.8" of PyTorch, "0.19.8" of DeepSpeed.
[[nodiscard]] inline std::string to_text(Library library, Version version) {
  return (library == Library::deepspeed ? "0." : "") + to_text(version);
}

struct VersionRule {
  Library library;
  std::string_view what;
  Version from;  ///< the first release of which it holds; 0: it held of all that are known
  Version to;    ///< the first of which it does not hold any more; 0: it still does
  std::string_view source;
  [[nodiscard]] constexpr bool holds(Version version) const { return version >= from && (to == 0 || version < to); }
};

/// Each thread keeps cuBLASLt's workspace. Before, every product took and gave back one of its own.
inline constexpr VersionRule kKeepsLtWorkspace{
    Library::pytorch, "cuBLASLt's workspace is kept", 209, 0,
    "dry runs of 2.8.0, 2.9.1 and 2.10.0; aten/src/ATen/cuda/CUDABlas.cpp, _getUnifiedWorkspaceWithoutHandle"};
/// The loss is of logits cast to fp32, whatever the class; before, each class did as it liked.
inline constexpr VersionRule kCastsLogits{Library::transformers, "the loss is of logits in fp32", 446, 0,
                                          "dry runs of 4.57.1; 4.46.3's loss/loss_utils.py, ForCausalLMLoss"};
/// Before, the second name was of the same tensor.
inline constexpr VersionRule kCopiesFrequencies{
    Library::transformers, "rotary embeddings keep a copy of their frequencies", 500, 0,
    "dry runs of 4.57.1 and 5.5.4; 5.0.0's modeling_llama.py, original_inv_freq"};
inline constexpr VersionRule kMaskedBiasOfGpt2{Library::transformers,
                                               "each attention of gpt2 has a number for what is masked", 0, 500,
                                               "dry runs of 4.57.1 and 5.5.4; 4.57.1's modeling_gpt2.py, masked_bias"};
inline constexpr VersionRule kMaskOfGpt2{Library::transformers, "each attention of gpt2 has a mask of all positions", 0,
                                         505, "dry runs of 4.57.1 and 5.5.4; modeling_gpt2.py of 5.0.0 and 5.5.4"};
/// Before, it was not compared.
inline constexpr VersionRule kAttentionWrittenOut{Library::transformers, "attention written out is as it is told here",
                                                  505, 0, "dry runs of 5.5.4, the oldest that was compared with it"};

/// Before, only a model that was made within zero.Init had it, and another's backward held gathered weights of
/// linear().
inline constexpr VersionRule kReplacesLinear{
    Library::deepspeed, "stage 3 replaces linear() for models of which it did not see the making", 1908, 0,
    "dry runs of 0.18.9; 0.19.8's runtime/zero/partition_parameters.py:1090, which 0.19.0 has not"};

inline constexpr VersionRule kPinsOffloaded{
    Library::deepspeed, "what is offloaded is pinned unless told otherwise", 1905, 0,
    "pull request 8207; 0.19.8's runtime/zero/offload_config.py:45 and 75, pin_memory"};

/// Every rule of every library.
[[nodiscard]] std::span<const VersionRule> version_rules();

/// A library, and the releases that dry runs were compared with.
struct LibraryRow {
  Library library;
  std::string_view name;
  std::span<const Version> compared;  ///< the newest first
};
[[nodiscard]] const LibraryRow& library_row(Library library);

/// The release that "4.57" or "4.57.1" is of; none for what is no version.
[[nodiscard]] std::optional<Version> version_of(std::string_view text);
/// Whether it was compared, or lies between two that were and between which no rule changed.
[[nodiscard]] bool is_known(Library library, Version version);
[[nodiscard]] bool is_compared(Library library, Version version);
/// "5.24, 5.23, 5.14, 5.5, 4.57": those that were compared.
[[nodiscard]] std::string compared_text(Library library);

}  // namespace shard::like::eager
