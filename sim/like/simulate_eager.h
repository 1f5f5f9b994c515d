// What a training program takes under eager PyTorch 2: the answer to `simulate --like pytorch@2.11`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/like/eager/run.h"
#include "sim/like/simulate_like.h"

namespace shard::like {

struct Framework;

/// Whether host memory is pinned; usually as the framework does where nothing is said.
enum class Pin : std::uint8_t { usual, yes, no };
/// reduce_dtype of FSDP's mixed precision: usually what parameters rest in.
enum class ReduceIn : std::uint8_t { usual, fp32, precision };

/// What describes the program beside its model and strategy.
struct EagerOptions {
  eager::Framework framework = eager::Framework::none;
  const Framework* row = nullptr;           ///< of the table of frameworks; null: the one of `framework`
  eager::Version version = eager::kNewest;  ///< of PyTorch
  bool original_parameters = true;          ///< fsdp1: use_orig_params
  bool masters = true;                      ///< sharded parameters rest in fp32 whatever the precision is
  ReduceIn reduce_in = ReduceIn::usual;
  eager::Version deepspeed = eager::kUsualDeepSpeed;
  std::int64_t reduce_bucket = 500'000'000;  ///< deepspeed: reduce_bucket_size, in elements
  eager::Zero3Options zero3{};               ///< deepspeed's stage 3
  Pin pin_memory = Pin::usual;               ///< of what rests on the host, FSDP's or offload_optimizer's
  Pin pin_parameters = Pin::usual;           ///< deepspeed: offload_param's; usual: as the other
  std::int32_t rank = 0;                     ///< deepspeed, where the optimizer is offloaded
  eager::Machine machine{};
  eager::Code code = eager::Code::hugging_face;
  eager::Attention attention = eager::Attention::sdpa;
  eager::Version transformers = eager::kUsualTransformers;
  eager::Logits logits = eager::Logits::usual;
  eager::Update update = eager::Update::foreach;
  bool set_to_none = true;
  bool cache = true;           ///< transformers' use_cache
  bool units_at_ends = false;  ///< fsdp2: of the embedding, and of the last norm with the head
  eager::Torchtitan torchtitan{};
  bool autocast = false;                   ///< bf16, over fp32 parameters
  std::optional<Bytes> device_capacity{};  ///< none: no limit
  CachingAllocatorOptions allocator{};
  bool sequence_parallel = false;  ///< megatron
  bool snapshot = false;           ///< every event is wanted

  friend bool operator==(const EagerOptions&, const EagerOptions&) = default;
};

/// Whether the program allocates the same, whatever allocator and device serve it.
[[nodiscard]] bool is_same_program(EagerOptions a, const EagerOptions& b);

/// Whether ranks sum gradients up in fp32, whatever the precision is.
[[nodiscard]] constexpr bool reduces_in_fp32(const EagerOptions& options) {
  return options.reduce_in == ReduceIn::usual ? options.masters : options.reduce_in == ReduceIn::fp32;
}

/// What NAME@VERSION puts over ranks with; none where it is no name of eager PyTorch 2.
[[nodiscard]] std::optional<eager::Framework> eager_framework(std::string_view name_at_version);

/// What an answer to these options was not compared with.
[[nodiscard]] std::vector<std::string> not_compared(const EagerOptions& options);
/// Errc::contradiction for whatever is not modelled, which it names.
///   made  the program, where it is known of options of the same program; null: it is made
[[nodiscard]] Result<LikeResult> simulate_eager(std::shared_ptr<const model::Model> model,
                                                const plan::Strategy& strategy, const EagerOptions& options,
                                                std::shared_ptr<const Program> made = nullptr);

}  // namespace shard::like
