// The shape of a published run's model, out of its columns, or of its name where they are empty.
#include "sim/validate/architecture.h"

#include <array>
#include <cmath>

#include "sim/validate/text.h"

namespace shard::validate {
namespace {

/// A model that tables name without its sizes. Each reproduces the parameters that are published with the name.
struct NamedShape {
  std::string_view words;
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocab;
};
// llm.c: train_gpt2.cu. phi-1.5 and StableLM: their config.json on the Hugging Face Hub (microsoft/phi-1_5,
// stabilityai/stablelm-base-alpha-3b). GPT-3: Brown et al. 2020, table 2.1. nanotron's: the sizes at which four
// products of h x h, three of h x ffn and one embedding of 131,072 make the parameters that the name states.
constexpr std::array kNamed{
    NamedShape{"gpt2-124m", 12, 768, 12, 12, 3072, 50304},
    NamedShape{"phi-1.5", 24, 2048, 32, 32, 8192, 51200},
    NamedShape{"stablelm-3b", 16, 4096, 32, 32, 16384, 50688},
    NamedShape{"gpt3-175b", 96, 12288, 96, 96, 49152, 51200},
    NamedShape{"nanotron-llama-1.34b", 16, 2048, 16, 16, 8192, 131072},
    NamedShape{"nanotron-llama-3.57b", 28, 3072, 24, 24, 8192, 131072},
    NamedShape{"nanotron-llama-8.86b", 32, 4096, 32, 32, 14336, 131072},
    NamedShape{"nanotron-llama-80", 80, 8192, 64, 64, 28672, 131072},
    NamedShape{"qwen3-32b", 64, 5120, 64, 8, 25600, 151936},
};

bool is_mixture(std::string_view model) {
  return holds(model, "deepseek") || holds(model, "ds-v") || holds(model, "mixtral") || holds(model, "-a3b") ||
         holds(model, "moe");
}

void fill(Architecture& a, const NamedShape& n) {
  const auto take = [](std::int64_t& to, std::int64_t from) {
    if (to == 0) to = from;
  };
  take(a.layers, n.layers);
  take(a.hidden, n.hidden);
  take(a.heads, n.heads);
  take(a.kv_heads, n.kv_heads);
  take(a.ffn, n.ffn);
  take(a.vocab, n.vocab);
}

Error without(std::string what) {
  return {.code = Errc::contradiction, .what = std::move(what), .where = {}, .help = "state it in its column"};
}

/// Head size 128 in all of Qwen3, whatever its width (config.json of Qwen/Qwen3-32B and others: head_dim).
void settle_family(Architecture& a, std::string_view model) {
  const bool llama =
      holds(model, "llama") || holds(model, "qwen") || holds(model, "internlm") || holds(model, "mistral");
  a.gated = llama;
  a.layer_norm = !llama;
  a.biases = !llama && !holds(model, "mpt");  // llm-foundry's benchmarks: no_bias
  a.positions = !llama && !holds(model, "stablelm") && !holds(model, "phi");
  a.head_norms = holds(model, "qwen3");
  if (a.head_norms) a.head_dim = 128;
  if (holds(model, "internlm")) a.ffn = a.ffn > 0 ? a.ffn : 11008;
}

/// One embedding for both ends, or two: what comes nearer to the stated number of parameters.
void settle_tying(Architecture& a, std::string_view model, double stated) {
  a.tied = !a.gated && !holds(model, "phi") && !holds(model, "stablelm");
  if (holds(model, "nanotron")) a.tied = a.layers < 32;
  if (holds(model, "3.2-")) a.tied = true;
  if (!(stated > 0)) return;
  Architecture one = a, two = a;
  one.tied = true;
  two.tied = false;
  const double to_one = std::abs(static_cast<double>(one.parameters()) - stated);
  const double to_two = std::abs(static_cast<double>(two.parameters()) - stated);
  if (std::min(to_one, to_two) < 0.02 * stated) a.tied = to_one < to_two;
}

}  // namespace

std::int64_t Architecture::block_parameters() const {
  const std::int64_t attention = 2 * hidden * query_width() + 2 * hidden * kv_width();
  const std::int64_t feed_forward = (gated ? 3 : 2) * hidden * ffn;
  const std::int64_t norms = (layer_norm && biases ? 4 : 2) * hidden + (head_norms ? 2 * head_dim : 0);
  const std::int64_t bias = biases ? query_width() + 2 * kv_width() + 2 * hidden + ffn : 0;
  return attention + feed_forward + norms + bias;
}

std::int64_t Architecture::parameters() const {
  return layers * block_parameters() + (tied ? 1 : 2) * embedding_parameters() + (positions ? sequence * hidden : 0) +
         (layer_norm && biases ? 2 : 1) * hidden;
}

Result<Architecture> architecture_of(const PublishedRun& run) {
  if (is_mixture(run.model)) return without("a mixture of experts: such models are not predicted");
  if (holds(run.model, "vlm")) return without("a model of pictures and text: its sizes are not stated");
  Architecture a{.name = run.model,
                 .layers = run.layers,
                 .hidden = run.hidden,
                 .heads = run.heads,
                 .kv_heads = run.kv_heads,
                 .ffn = run.ffn,
                 .vocab = run.vocab,
                 .sequence = run.sequence};
  for (const NamedShape& n : kNamed)
    if (holds(run.model, n.words)) fill(a, n);
  if (a.layers == 0 || a.hidden == 0) return without("the model's sizes are not stated, and its name is not known");
  settle_family(a, run.model);
  if (a.heads == 0) a.heads = std::max<std::int64_t>(1, a.hidden / 128);
  if (a.kv_heads == 0) a.kv_heads = a.heads;
  if (a.ffn == 0) a.ffn = 4 * a.hidden;
  if (a.vocab == 0) a.vocab = 51200;  // GPT-2's 50,257, padded as Megatron does for 8 ranks
  if (a.sequence == 0) return without("the length of a sequence is not stated");
  settle_tying(a, run.model, run.parameters);
  return a;
}

}  // namespace shard::validate
