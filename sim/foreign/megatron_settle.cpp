// Arguments of Megatron-LM that mean something together: ranks, batches, the model.
#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "sim/foreign/batches.h"
#include "sim/foreign/megatron.h"

namespace shard::foreign {
namespace {

constexpr std::string_view kModelKeys[] = {"num-layers",
                                           "hidden-size",
                                           "embedding-dim",
                                           "ffn-hidden-size",
                                           "num-attention-heads",
                                           "kv-channels",
                                           "max-position-embeddings",
                                           "group-query-attention",
                                           "num-query-groups",
                                           "num-key-value-heads",
                                           "swiglu",
                                           "normalization",
                                           "norm-epsilon",
                                           "layernorm-epsilon",
                                           "disable-bias-linear",
                                           "add-qkv-bias",
                                           "position-embedding-type",
                                           "use-rotary-position-embeddings",
                                           "rotary-base",
                                           "rotary-percent",
                                           "untie-embeddings-and-output-weights",
                                           "vocab-size",
                                           "padded-vocab-size",
                                           "make-vocab-size-divisible-by",
                                           "attention-head-type"};

/// GPT-2's tokenizer, which Megatron's examples use, has so many tokens.
constexpr std::int64_t kGpt2Vocabulary = 50257;
constexpr std::int64_t kMostNumber = std::int64_t{1} << 31;

/// "8", or "gpu:8", "gpu:a100:8"; 0 for what says nothing.
std::int64_t count_in(const Value& value) {
  if (const std::optional<std::int64_t> whole = whole_in(value)) return *whole > 0 && *whole < kMostNumber ? *whole : 0;
  if (value.kind != Kind::text || !value.text.starts_with("gpu:")) return 0;
  return count_in(text_value(value.text.substr(value.text.rfind(':') + 1), value.line));
}

class MegatronModel {
 public:
  explicit MegatronModel(Reading& reading) : reading_(reading) {}

  Result<void> run() {
    if (const std::optional<std::string> model = reading_.given().option("model")) {
      leave_all("--model " + *model + " says it");
      return {};
    }
    for (const std::string_view key : kModelKeys)
      if (Result<void> ok = check(key); !ok) return ok;
    const std::optional<std::int64_t> layers = number("num-layers");
    const std::optional<std::int64_t> hidden = number("hidden-size");
    const std::optional<std::int64_t> heads = number("num-attention-heads");
    if (!layers || !hidden || !heads) {
      leave_all(
          "a model has --num-layers, --hidden-size and --num-attention-heads, and not all are known here: give "
          "--model");
      return {};
    }
    if (*hidden % *heads != 0)
      return reading_.refused(leaf("num-attention-heads"),
                              "it does not divide --hidden-size " + std::to_string(*hidden), "a divisor of it");
    if (text("attention-head-type") == "multiquery" || text("position-embedding-type") == "alibi") {
      leave_all("of a kind of model that these numbers do not describe here: give --model");
      return {};
    }
    describe(*layers, *hidden, *heads);
    return {};
  }

 private:
  [[nodiscard]] static std::string pointer(std::string_view key) { return "/" + std::string(key); }
  [[nodiscard]] const Value* value(std::string_view key) const { return reading_.root().find(key); }
  [[nodiscard]] Leaf leaf(std::string_view key) const { return {.pointer = pointer(key), .value = value(key)}; }
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view key) const {
    return value(key) == nullptr ? std::nullopt : whole_in(*value(key));
  }
  [[nodiscard]] std::string text(std::string_view key) const {
    return value(key) == nullptr ? "" : lower(value(key)->text);
  }
  [[nodiscard]] bool flag(std::string_view key) const {
    return value(key) != nullptr && flag_in(*value(key)).value_or(true);
  }

  Result<void> check(std::string_view key) const {
    constexpr std::array<std::string_view, 10> kCounts{"num-layers",
                                                       "hidden-size",
                                                       "ffn-hidden-size",
                                                       "num-attention-heads",
                                                       "max-position-embeddings",
                                                       "num-query-groups",
                                                       "num-key-value-heads",
                                                       "vocab-size",
                                                       "padded-vocab-size",
                                                       "make-vocab-size-divisible-by"};
    if (value(key) == nullptr || std::ranges::find(kCounts, key) == kCounts.end()) return {};
    const std::optional<std::int64_t> count = number(key);
    if (!count) return reading_.wrong_kind(leaf(key), "a whole number");
    if (*count < 1 || *count > kMostNumber)
      return reading_.refused(leaf(key), "it is at least 1, and no model's is as large", "1");
    return {};
  }

  void leave_all(const std::string& reason) {
    for (const std::string_view key : kModelKeys)
      if (value(key) != nullptr) reading_.leave(pointer(key), reason);
  }

  /// --vocab-size is rounded up to a multiple of --make-vocab-size-divisible-by times the tensor-parallel ranks.
  [[nodiscard]] std::int64_t vocabulary() const {
    if (const std::optional<std::int64_t> padded = number("padded-vocab-size")) return *padded;
    const std::optional<std::string> parallel = reading_.in_force("tensor-parallel");
    const std::int64_t ranks =
        parallel ? std::clamp<std::int64_t>(whole_in(text_value(*parallel, 0)).value_or(1), 1, 4096) : 1;
    const std::int64_t step =
        std::min(number("make-vocab-size-divisible-by").value_or(128), kMostNumber / 4096) * ranks;
    return (number("vocab-size").value_or(kGpt2Vocabulary) + step - 1) / step * step;
  }

  /// Two families are described: GPT-2's, and llama's where any of what makes it one is there.
  void describe(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
    const bool rotary = flag("use-rotary-position-embeddings") || text("position-embedding-type") == "rope";
    const bool llama = flag("swiglu") && text("normalization") == "rmsnorm" && rotary;
    const std::int64_t longest = number("max-position-embeddings").value_or(number("seq-length").value_or(1024));
    nlohmann::ordered_json config;
    std::vector<std::string_view> used{
        "num-layers", "hidden-size",       "num-attention-heads",          "max-position-embeddings",
        "vocab-size", "padded-vocab-size", "make-vocab-size-divisible-by", "ffn-hidden-size"};
    if (llama) {
      config = {{"model_type", "llama"},
                {"hidden_size", hidden},
                {"num_hidden_layers", layers},
                {"num_attention_heads", heads},
                {"vocab_size", vocabulary()},
                {"max_position_embeddings", longest},
                {"tie_word_embeddings", !flag("untie-embeddings-and-output-weights")}};
      // Megatron's own default with SwiGLU: two thirds of four times the width, rounded to 64.
      config["intermediate_size"] = number("ffn-hidden-size").value_or((hidden * 4 * 2 / 3) / 64 * 64);
      const std::optional<std::int64_t> groups = number("num-query-groups");
      config["num_key_value_heads"] = groups ? *groups : number("num-key-value-heads").value_or(heads);
      used.insert(used.end(), {"swiglu", "normalization", "num-query-groups", "num-key-value-heads",
                               "group-query-attention", "use-rotary-position-embeddings", "position-embedding-type",
                               "untie-embeddings-and-output-weights", "disable-bias-linear"});
    } else {
      config = {{"model_type", "gpt2"}, {"n_embd", hidden},       {"n_layer", layers},
                {"n_head", heads},      {"n_positions", longest}, {"vocab_size", vocabulary()}};
      config["n_inner"] = number("ffn-hidden-size").value_or(4 * hidden);
      if (text("position-embedding-type") == "learned_absolute") used.emplace_back("position-embedding-type");
      if (text("normalization") == "layernorm") used.emplace_back("normalization");
    }
    for (const std::string_view key : kModelKeys)
      if (value(key) != nullptr && std::ranges::find(used, key) == used.end())
        reading_.leave(pointer(key), "the model that is predicted is " + std::string(llama ? "a llama" : "GPT-2's") +
                                         ", where it has no meaning");
    for (const std::string_view key : used)
      if (value(key) != nullptr) reading_.understand(pointer(key));
    reading_.set(leaf("num-layers"), "model", config.dump(), Certainty::assumed);
  }

  Reading& reading_;
};

Result<void> settle_megatron_batches(Reading& reading, std::span<const LeftOut> unread) {
  const bool old_name =
      reading.root().find("micro-batch-size") == nullptr && reading.root().find("batch-size") != nullptr;
  // A micro-batch that is there, and not known, is not worked out of the others.
  const bool open_micro = std::ranges::find(unread, "/micro-batch-size", &LeftOut::key) != unread.end();
  if (const Value* whole = reading.root().find("global-batch-size"); open_micro && whole != nullptr) {
    const Row row{.key = "/global-batch-size", .option = "global-batch"};
    return take_count(reading, {.pointer = "/global-batch-size", .value = whole}, row);
  }
  BatchKeys keys{
      .micro = old_name ? "/batch-size" : "/micro-batch-size",
      .accumulation = "/gradient-accumulate-step",
      .whole = old_name || reading.root().find("global-batch-size") != nullptr ? "/global-batch-size" : "/batch-size"};
  return settle_batches(reading, keys);
}

Result<void> settle_offload(Reading& reading) {
  if (const Value* fraction = reading.root().find("optimizer-offload-fraction")) {
    const Leaf leaf{.pointer = "/optimizer-offload-fraction", .value = fraction};
    const std::optional<double> share = number_in(*fraction);
    if (!share || *share < 0 || *share > 1) return reading.wrong_kind(leaf, "a fraction from 0 to 1");
    if (reading.setting("optimizer-placement") == nullptr)
      reading.leave(leaf.pointer, "counts with --optimizer-cpu-offload alone");
    else
      reading.set(leaf, "optimizer-placement", number_text(1 - *share));
  }
  if (reading.setting("optimizer-placement") != nullptr && reading.setting("placement") == nullptr) {
    const Setting* const behind = reading.setting("optimizer-placement");
    const Leaf leaf{.pointer = behind->pointer, .value = reading.root().at(behind->pointer)};
    reading.set(leaf, "placement", "static");
  }
  return {};
}

}  // namespace

void settle_ranks(Reading& reading, std::span<const std::string_view> processes,
                  std::span<const std::string_view> nodes, std::span<const LeftOut> unread) {
  const auto first = [&](std::span<const std::string_view> keys) {
    Leaf found{.pointer = "", .value = nullptr};
    for (const std::string_view key : keys) {
      const Value* const value = reading.root().at(key);
      if (value == nullptr) continue;
      if (found.value == nullptr && count_in(*value) > 0)
        found = {.pointer = std::string(key), .value = value};
      else
        reading.leave(key, found.value != nullptr ? found.pointer + " says it as well, and counts"
                                                  : "no number of ranks: give --world-size");
    }
    return found;
  };
  const Leaf each = first(processes);
  const Leaf of_nodes = first(nodes);
  const bool open_nodes = of_nodes.value == nullptr && std::ranges::any_of(nodes, [&](std::string_view key) {
                            return std::ranges::find(unread, key, &LeftOut::key) != unread.end();
                          });
  const std::int64_t count = of_nodes.value == nullptr ? 1 : count_in(*of_nodes.value);
  if (each.value == nullptr) {
    if (of_nodes.value != nullptr)
      reading.leave(of_nodes.pointer, "how many GPUs a node has is not known here: give --world-size");
    return;
  }
  if (open_nodes) {
    reading.leave(each.pointer, "how many nodes there are is not known here: give --world-size");
    return;
  }
  if (of_nodes.value != nullptr) reading.understand(of_nodes.pointer);
  const std::int64_t ranks = count_in(*each.value) * count;
  if (ranks > 0 && ranks < kMostNumber)
    reading.set(each, "world-size", std::to_string(ranks));
  else
    reading.leave(each.pointer, "no number of ranks: give --world-size");
}

Result<void> settle_megatron(Reading& reading, std::span<const LeftOut> unread) {
  constexpr std::string_view kProcesses[] = {"/nproc_per_node", "/nproc-per-node", "/num_gpus", "/sbatch/gpus-per-node",
                                             "/sbatch/gres"};
  constexpr std::string_view kNodes[] = {"/nnodes", "/num_nodes", "/sbatch/nodes"};
  settle_ranks(reading, kProcesses, kNodes, unread);
  if (Result<void> ok = settle_megatron_batches(reading, unread); !ok) return ok;
  if (Result<void> ok = settle_offload(reading); !ok) return ok;
  return MegatronModel(reading).run();
}

}  // namespace shard::foreign
