// The table of them.
#include "sim/commands/eager_options.h"

#include <string>

#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

constexpr const char* kEagerOptions[] = {
    "model-code",      "attention",         "optimizer-implementation", "zero-grad",      "autocast",       "masters",
    "use-orig-params", "sequence-parallel", "reduce-bucket-size",       "allocator-conf", "memory-fraction"};

}  // namespace

void add_eager_options(cli::Command& command, like::EagerOptions& o, AllocatorFlags& allocator) {
  using like::eager::Attention;
  using like::eager::Code;
  using like::eager::Update;
  cli::Group group = command.group("--like pytorch@2.11");
  group.add_choice<Code>("model-code", &o.code,
                         {{"hugging-face", Code::hugging_face, "transformers 5, its decoders"},
                          {"cs336", Code::course, "the course's transformer, attention by einsum"},
                          {"torchtitan", Code::torchtitan, "its llama3 and qwen3 as of autumn 2025"}},
                         "whose code the model is");
  group.add_choice<Attention>(
      "attention", &o.attention,
      {{"sdpa", Attention::sdpa, "scaled_dot_product_attention"}, {"eager", Attention::eager, "scores written out"}},
      "attn_implementation of transformers");
  group.add_choice<bool>("logits", &o.wide_logits,
                         {{"fp32", true, "cast for it, as in transformers 5"},
                          {"own", false, "in their own type and shifted, as in gpt_bigcode of transformers 4"}},
                         "what the loss is taken of");
  group.add_choice<Update>("optimizer-implementation", &o.update,
                           {{"foreach", Update::foreach, "all parameters at once"},
                            {"fused", Update::fused, "one kernel"},
                            {"for-loop", Update::for_loop, "parameter by parameter"}},
                           "of torch.optim; its default on CUDA is foreach");
  group.add_choice<bool>("zero-grad", &o.set_to_none,
                         {{"none", true, "gradients are freed"}, {"zero", false, "gradients stay"}},
                         "what optimizer.zero_grad() makes of gradients");
  group.add_choice<bool>("autocast", &o.autocast,
                         {{"none", false, "as --precision says"}, {"bf16", true, "over fp32 parameters"}},
                         "what torch.autocast runs forward in");
  group.add_choice<bool>(
      "masters", &o.masters,
      {{"fp32", true, "shards and sums of gradients are fp32"}, {"none", false, "everything is of --precision"}},
      "fsdp1, fsdp2: what --precision bf16 rests in");
  group.add_choice<bool>("use-orig-params", &o.original_parameters,
                         {{"true", true, "the optimizer has what of each parameter is in a shard"},
                          {"false", false, "the optimizer has flat parameters"}},
                         "fsdp1: use_orig_params");
  group.add_flag("sequence-parallel", &o.sequence_parallel, "megatron: norms and dropout on a part of the sequence");
  group.add("reduce-bucket-size", &o.reduce_bucket, "ELEMENTS", "deepspeed: reduce_bucket_size, in elements")
      .least(1)
      .most(1e15);
  add_allocator_options(group, allocator, true);
}

Result<void> refuse_eager_options(const cli::Command& command) {
  for (const char* option : kEagerOptions)
    if (command.given(option))
      return cli::contradiction(command.describe(option) + " has no meaning without --like pytorch",
                                "--like pytorch, or leave --" + std::string(option) + " out");
  return {};
}

}  // namespace shard::commands
