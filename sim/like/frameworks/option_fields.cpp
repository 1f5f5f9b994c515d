// The rows of programs' options, and where each value lies.
#include "sim/like/frameworks/option_fields.h"

#include <algorithm>

namespace shard::like {
namespace {

template <class T, class Of>
T member_type(T Of::*);

/// Choices that stand in the order of the member's own values, its first being `first`.
template <auto kMember, int kFirst = 0>
ChoicePlace choice(std::vector<ChoicePlace::Choice> choices) {
  using T = decltype(member_type(kMember));
  return {.choices = std::move(choices),
          .of = [](const EagerOptions& o) { return static_cast<std::size_t>(o.*kMember) ^ kFirst; },
          .set = [](EagerOptions& o, std::size_t at) { o.*kMember = static_cast<T>(at ^ kFirst); }};
}
/// A yes and a no: `yes` is first.
template <auto kMember>
ChoicePlace yes_or_no(ChoicePlace::Choice yes, ChoicePlace::Choice no) {
  return choice<kMember, 1>({yes, no});
}

template <auto kIn>
NumberPlace elements(double least = 0) {
  return {.in = kIn, .least = least, .most = 1e15};
}

std::vector<OptionField> deepspeed_fields() {
  return {
      {.option = "reduce-bucket-size",
       .value_name = "ELEMENTS",
       .help = "deepspeed: reduce_bucket_size, in elements",
       .place = elements<[](EagerOptions& o) { return &o.reduce_bucket; }>(1)},
      {.option = "stage3-prefetch-bucket-size",
       .value_name = "ELEMENTS",
       .help = "deepspeed, stage 3: what is gathered ahead at once",
       .place = elements<[](EagerOptions& o) { return &o.zero3.prefetch_bucket; }>(),
       .stage = 3},
      {.option = "stage3-param-persistence-threshold",
       .value_name = "ELEMENTS",
       .help = "deepspeed, stage 3: parameters up to this size stay gathered",
       .place = elements<[](EagerOptions& o) { return &o.zero3.persistence_threshold; }>(),
       .stage = 3},
      {.option = "stage3-max-live-parameters",
       .value_name = "ELEMENTS",
       .help = "deepspeed, stage 3: nothing is gathered ahead beyond it",
       .place = elements<[](EagerOptions& o) { return &o.zero3.max_live; }>(),
       .stage = 3},
      {.option = "stage3-max-reuse-distance",
       .value_name = "ELEMENTS",
       .help = "deepspeed, stage 3: what is used again within it stays gathered",
       .place = elements<[](EagerOptions& o) { return &o.zero3.max_reuse_distance; }>(),
       .stage = 3},
      {.option = "zero-init",
       .help = "deepspeed, stage 3: how the model is made",
       .place =
           ChoicePlace{.choices = {{"yes", "within deepspeed.zero.Init, as transformers' Trainer and accelerate do"},
                                   {"no", "whole on each GPU, then cut: deepspeed.initialize() of a plain model"}},
                       .of = [](const EagerOptions& o) { return o.zero3.within_init ? 0UL : 1UL; },
                       .set = [](EagerOptions& o, std::size_t at) { o.zero3.within_init = at == 0; }},
       .stage = 3},
      {.option = "sub-group-size",
       .value_name = "ELEMENTS",
       .help = "deepspeed, stage 3: parameters that are updated at once",
       .place = elements<[](EagerOptions& o) { return &o.zero3.sub_group; }>(),
       .stage = 3},
  };
}

std::vector<OptionField> with_more(std::vector<OptionField> fields, const std::vector<OptionField>& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

}  // namespace

std::span<const OptionField> option_fields() {
  static const std::vector<OptionField> kFields{
      {.option = "model-code",
       .help = "whose code the model is",
       .place = choice<&EagerOptions::code>({{"hugging-face", "transformers, its decoders"},
                                             {"cs336", "the course's transformer, attention by einsum"},
                                             {"torchtitan", "its llama3 and qwen3 as of autumn 2025"}})},
      {.option = "attention",
       .help = "attn_implementation of transformers",
       .place = choice<&EagerOptions::attention>(
           {{"sdpa", "scaled_dot_product_attention"}, {"eager", "scores written out"}})},
      {.option = "logits",
       .help = "what the loss is taken of",
       .place =
           choice<&EagerOptions::logits>({{"usual", "as the release of --transformers does: cast"},
                                          {"fp32", "cast for it"},
                                          {"own", "in their own type and shifted, as in gpt_bigcode before 4.46"}})},
      {.option = "transformers",
       .value_name = "VERSION",
       .help = "whose code of the model; classes that differ in a release are refused",
       .place = VersionPlace{eager::Library::transformers, &EagerOptions::transformers}},
      {.option = "use-cache",
       .help = "transformers' use_cache, which checkpoints turn off",
       .place = yes_or_no<&EagerOptions::cache>(
           {"true", "keys and values are copied into a cache, as a loop of one's own has it"},
           {"false", "they are not: TrainingArguments of transformers 5"})},
      {.option = "optimizer-implementation",
       .help = "of torch.optim; its default on CUDA is foreach",
       .place = choice<&EagerOptions::update>(
           {{"foreach", "all parameters at once"}, {"fused", "one kernel"}, {"for-loop", "parameter by parameter"}})},
      {.option = "zero-grad",
       .help = "what optimizer.zero_grad() makes of gradients",
       .place = yes_or_no<&EagerOptions::set_to_none>({"none", "gradients are freed"}, {"zero", "gradients stay"})},
      {.option = "autocast",
       .help = "what torch.autocast runs forward in",
       .place = choice<&EagerOptions::autocast>({{"none", "as --precision says"}, {"bf16", "over fp32 parameters"}})},
      {.option = "masters",
       .help = "fsdp1, fsdp2: what --precision bf16 rests in",
       .place =
           yes_or_no<&EagerOptions::masters>({"fp32", "shards are fp32"}, {"none", "everything is of --precision"})},
      {.option = "reduce-dtype",
       .help = "fsdp1, fsdp2: reduce_dtype of the mixed precision, of gradients while ranks sum them up",
       .place = choice<&EagerOptions::reduce_in>({{"usual", "as --masters says"},
                                                  {"fp32", "whatever rests in 16 bits"},
                                                  {"precision", "what --precision says, as accelerate has it"}})},
      {.option = "fsdp-units",
       .help = "fsdp2: what fully_shard is called with",
       .place = choice<&EagerOptions::units_at_ends>(
           {{"blocks", "each block, and the model"},
            {"ends", "the embedding, and the last norm with the head, too, as accelerate 1.14 and later do"}})},
      {.option = "use-orig-params",
       .help = "fsdp1: use_orig_params",
       .place = yes_or_no<&EagerOptions::original_parameters>(
           {"true", "the optimizer has what of each parameter is in a shard"},
           {"false", "the optimizer has flat parameters"})},
      {.option = "pin-memory",
       .help = "fsdp2, deepspeed: of what --placement puts on the host",
       .place = choice<&EagerOptions::pin_memory>({{"usual", "pinned; of DeepSpeed before 0.19.5 pageable"},
                                                   {"true", "parameters' parts and their gradients are pinned"},
                                                   {"false", "they are pageable"}})},
      {.option = "sequence-parallel",
       .help = "megatron: norms and dropout on a part of the sequence",
       .place = FlagPlace{&EagerOptions::sequence_parallel}},
  };
  static const std::vector<OptionField> kAll = with_more(kFields, deepspeed_fields());
  return kAll;
}

std::int32_t only_stage_of(std::string_view option) {
  const auto at = std::ranges::find(option_fields(), option, &OptionField::option);
  return at == option_fields().end() ? 0 : at->stage;
}

}  // namespace shard::like
