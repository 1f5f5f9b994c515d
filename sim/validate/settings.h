// What a published run's settings can be: the words of typed columns. tests/validation/README.md says what each means.
#pragma once

#include <cstdint>

#include "traces/base/word.h"

namespace shard::validate {

/// Whose rules of memory a run follows.
enum class Framework : std::uint8_t {
  pytorch,         ///< one rank
  ddp,             ///< DistributedDataParallel
  fsdp1,           ///< FullyShardedDataParallel
  fsdp2,           ///< fully_shard
  graph_fsdp,      ///< torchtitan's whole-graph compilers (SimpleFSDP)
  deepspeed,       ///< ZeRO
  megatron,        ///< Megatron-LM, and what does as it does
  low_level_zero,  ///< Colossal-AI's LowLevelZero
  gemini,          ///< Colossal-AI's Gemini and PatrickStar: chunks
  other,
};
[[nodiscard]] constexpr Word word(Framework v) {
  switch (v) {
    case Framework::pytorch: return {"pytorch"};
    case Framework::ddp: return {"ddp"};
    case Framework::fsdp1: return {"fsdp1"};
    case Framework::fsdp2: return {"fsdp2"};
    case Framework::graph_fsdp: return {"graph_fsdp"};
    case Framework::deepspeed: return {"deepspeed"};
    case Framework::megatron: return {"megatron"};
    case Framework::low_level_zero: return {"low_level_zero"};
    case Framework::gemini: return {"gemini"};
    case Framework::other: return {"other"};
  }
  return {};
}

/// Whose code the model is.
enum class Code : std::uint8_t {
  hugging_face,
  torchtitan,
  llm_foundry,
  litgpt,
  torchtune,
  internevo,
  nanotron,
  megatron,
  llm_c,
  fms,
  patrickstar,
  bmtrain,
  atorch,
};
[[nodiscard]] constexpr Word word(Code v) {
  switch (v) {
    case Code::hugging_face: return {"hugging_face"};
    case Code::torchtitan: return {"torchtitan"};
    case Code::llm_foundry: return {"llm_foundry"};
    case Code::litgpt: return {"litgpt"};
    case Code::torchtune: return {"torchtune"};
    case Code::internevo: return {"internevo"};
    case Code::nanotron: return {"nanotron"};
    case Code::megatron: return {"megatron"};
    case Code::llm_c: return {"llm_c"};
    case Code::fms: return {"fms"};
    case Code::patrickstar: return {"patrickstar"};
    case Code::bmtrain: return {"bmtrain"};
    case Code::atorch: return {"atorch"};
  }
  return {};
}

enum class Family : std::uint8_t { gpt2, llama, mistral, qwen2, qwen3, mpt, phi, gpt_neox, bert, mlp, vision };
[[nodiscard]] constexpr Word word(Family v) {
  switch (v) {
    case Family::gpt2: return {"gpt2"};
    case Family::llama: return {"llama"};
    case Family::mistral: return {"mistral"};
    case Family::qwen2: return {"qwen2"};
    case Family::qwen3: return {"qwen3"};
    case Family::mpt: return {"mpt"};
    case Family::phi: return {"phi"};
    case Family::gpt_neox: return {"gpt_neox"};
    case Family::bert: return {"bert"};
    case Family::mlp: return {"mlp"};
    case Family::vision: return {"vision"};
  }
  return {};
}

/// What FSDP gathers together.
enum class Wrapping : std::uint8_t { none, block, block_and_ends };
[[nodiscard]] constexpr Word word(Wrapping v) {
  switch (v) {
    case Wrapping::none: return {"none"};
    case Wrapping::block: return {"block"};
    case Wrapping::block_and_ends: return {"block_and_ends"};
  }
  return {};
}

/// What weights, gradients and optimizer states rest in, and what is summed.
enum class Precision : std::uint8_t {
  fp32,
  master_shards,   ///< fp32 shards, 16-bit copies where they are used (FSDP's mixed precision)
  beside_masters,  ///< 16-bit weights and gradients, fp32 masters and moments (DeepSpeed, Apex)
  fp32_gradients,  ///< 16-bit weights, fp32 gradients, masters and moments (Megatron)
  all_16_bit,      ///< no masters: weights, gradients and moments in 16 bits
};
[[nodiscard]] constexpr Word word(Precision v) {
  switch (v) {
    case Precision::fp32: return {"fp32"};
    case Precision::master_shards: return {"master_shards"};
    case Precision::beside_masters: return {"beside_masters"};
    case Precision::fp32_gradients: return {"fp32_gradients"};
    case Precision::all_16_bit: return {"all_16_bit"};
  }
  return {};
}

enum class ComputeType : std::uint8_t { fp32, bf16, fp16 };
[[nodiscard]] constexpr Word word(ComputeType v) {
  switch (v) {
    case ComputeType::fp32: return {"fp32"};
    case ComputeType::bf16: return {"bf16"};
    case ComputeType::fp16: return {"fp16"};
  }
  return {};
}

enum class Float8 : std::uint8_t { none, inputs, gathered, four_bits };
[[nodiscard]] constexpr Word word(Float8 v) {
  switch (v) {
    case Float8::none: return {"none"};
    case Float8::inputs: return {"inputs"};
    case Float8::gathered: return {"gathered"};
    case Float8::four_bits: return {"four_bits"};
  }
  return {};
}

/// How far one scale of values in 8 or 4 bits reaches.
enum class Float8Scales : std::uint8_t { none, tensor, row, block };
[[nodiscard]] constexpr Word word(Float8Scales v) {
  switch (v) {
    case Float8Scales::none: return {"none"};
    case Float8Scales::tensor: return {"tensor"};
    case Float8Scales::row: return {"row"};
    case Float8Scales::block: return {"block"};
  }
  return {};
}

/// Between the GPUs of a host.
enum class HostLink : std::uint8_t { nvlink, pcie, none };
[[nodiscard]] constexpr Word word(HostLink v) {
  switch (v) {
    case HostLink::nvlink: return {"nvlink"};
    case HostLink::pcie: return {"pcie"};
    case HostLink::none: return {"none"};
  }
  return {};
}

enum class Recompute : std::uint8_t { none, block, every_other_block, selective, attention, other };
[[nodiscard]] constexpr Word word(Recompute v) {
  switch (v) {
    case Recompute::none: return {"none"};
    case Recompute::block: return {"block"};
    case Recompute::every_other_block: return {"every_other_block"};
    case Recompute::selective: return {"selective"};
    case Recompute::attention: return {"attention"};
    case Recompute::other: return {"other"};
  }
  return {};
}

/// What torch.compile was given.
enum class Compile : std::uint8_t { none, block, model };
[[nodiscard]] constexpr Word word(Compile v) {
  switch (v) {
    case Compile::none: return {"none"};
    case Compile::block: return {"block"};
    case Compile::model: return {"model"};
  }
  return {};
}

enum class Attention : std::uint8_t { flash, eager };
[[nodiscard]] constexpr Word word(Attention v) {
  switch (v) {
    case Attention::flash: return {"flash"};
    case Attention::eager: return {"eager"};
  }
  return {};
}

enum class Loss : std::uint8_t { eager, compiled, chunked, one_pass, fused };
[[nodiscard]] constexpr Word word(Loss v) {
  switch (v) {
    case Loss::eager: return {"eager"};
    case Loss::compiled: return {"compiled"};
    case Loss::chunked: return {"chunked"};
    case Loss::one_pass: return {"one_pass"};
    case Loss::fused: return {"fused"};
  }
  return {};
}

enum class Norms : std::uint8_t { fused, written_out };
[[nodiscard]] constexpr Word word(Norms v) {
  switch (v) {
    case Norms::fused: return {"fused"};
    case Norms::written_out: return {"written_out"};
  }
  return {};
}

enum class Optimizer : std::uint8_t { adamw, adam };
[[nodiscard]] constexpr Word word(Optimizer v) {
  switch (v) {
    case Optimizer::adamw: return {"adamw"};
    case Optimizer::adam: return {"adam"};
  }
  return {};
}

enum class OptimizerStep : std::uint8_t { foreach, fused, single, in_backward };
[[nodiscard]] constexpr Word word(OptimizerStep v) {
  switch (v) {
    case OptimizerStep::foreach: return {"foreach"};
    case OptimizerStep::fused: return {"fused"};
    case OptimizerStep::single: return {"single"};
    case OptimizerStep::in_backward: return {"in_backward"};
  }
  return {};
}

enum class Adapter : std::uint8_t { none, lora, qlora };
[[nodiscard]] constexpr Word word(Adapter v) {
  switch (v) {
    case Adapter::none: return {"none"};
    case Adapter::lora: return {"lora"};
    case Adapter::qlora: return {"qlora"};
  }
  return {};
}

/// What a published figure of memory counts.
enum class MemoryKind : std::uint8_t {
  allocated,   ///< torch.cuda.max_memory_allocated
  active,      ///< with blocks whose free waits for a stream
  reserved,    ///< torch.cuda.max_memory_reserved
  nvidia_smi,  ///< of the process, with context and libraries
  states,      ///< parameters, gradients and optimizer states alone
  not_stated,
};
[[nodiscard]] constexpr Word word(MemoryKind v) {
  switch (v) {
    case MemoryKind::allocated: return {"allocated"};
    case MemoryKind::active: return {"active"};
    case MemoryKind::reserved: return {"reserved"};
    case MemoryKind::nvidia_smi: return {"nvidia_smi", "nvidia-smi"};
    case MemoryKind::states: return {"states", "model states"};
    case MemoryKind::not_stated: return {"not_stated", "not stated"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(MemoryKind v) {
  return *word(v).help == '\0' ? word(v).text : word(v).help;
}

enum class Outcome : std::uint8_t {
  ran,
  fits,  ///< ran; its memory is known as no more than the device's
  out_of_memory,
};
[[nodiscard]] constexpr Word word(Outcome v) {
  switch (v) {
    case Outcome::ran: return {"ran"};
    case Outcome::fits: return {"fits"};
    case Outcome::out_of_memory: return {"out_of_memory", "out of memory"};
  }
  return {};
}

enum class Evidence : std::uint8_t {
  measured,
  analytic,  ///< arithmetic on paper
  maximum,   ///< a stated maximum: only that it fits is known
};
[[nodiscard]] constexpr Word word(Evidence v) {
  switch (v) {
    case Evidence::measured: return {"measured"};
    case Evidence::analytic: return {"analytic"};
    case Evidence::maximum: return {"maximum"};
  }
  return {};
}

}  // namespace shard::validate
