// Keys of Colossal-AI that mean something together.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/foreign/batches.h"
#include "sim/foreign/colossalai.h"

namespace shard::foreign {
namespace {

constexpr std::string_view kGeminis[] = {"GeminiDDP",     "ZeroDDP",      "GeminiPlugin",
                                         "GeminiManager", "ChunkManager", "init_chunk_manager"};

class ColossalSettling {
 public:
  explicit ColossalSettling(Reading& reading) : reading_(reading) {}

  Result<void> run() {
    sharded_models();
    geminis();
    chunk_search();
    zero_plugins();
    if (Result<void> ok = fractions(); !ok) return ok;
    if (Result<void> ok = tensor_parallel(); !ok) return ok;
    if (Result<void> ok = zero1(); !ok) return ok;
    for (const char* key : {"HybridAdam", "CPUAdam", "FusedAdam"})
      if (const Value* value = reading_.root().find(key); value != nullptr && value->is_table())
        if (const Leaf first = understood_below(key);
            first.value != nullptr && reading_.setting("optimizer") == nullptr)
          reading_.set(first, "optimizer", "adamw");
    lightning();
    pinned();
    if (Result<void> ok = batches(); !ok) return ok;
    if (like_gemini()) as_gemini();
    return model();
  }

 private:
  [[nodiscard]] const Value* at(const std::string& pointer) const { return reading_.root().at(pointer); }
  [[nodiscard]] Leaf leaf(const std::string& pointer) const { return {.pointer = pointer, .value = at(pointer)}; }

  /// A leaf below a key that has become a setting, to hang what follows from the key's presence on.
  [[nodiscard]] Leaf understood_below(const std::string& key) const {
    const std::string prefix = pointer_part(key) + "/";
    for (const Leaf& each : leaves(reading_.root()))
      if (each.pointer.starts_with(prefix) && is_set(each.pointer)) return each;
    return {.pointer = "", .value = nullptr};
  }
  [[nodiscard]] bool is_set(const std::string& pointer) const {
    for (const char* option : {"unit",
                               "placement",
                               "reuse-fp16-shard",
                               "fp32-reduce-scatter",
                               "gpu-margin-mem-ratio",
                               "initial-scale",
                               "reduce-scatter-bucket-size-mb",
                               "search-range",
                               "min-chunk",
                               "search-interval",
                               "precision",
                               "lr",
                               "clip-norm",
                               "stage",
                               "prefetch",
                               "chunk-size",
                               "distributed-storage",
                               "tensor-parallel",
                               "weight-decay",
                               "gradient-predivide-factor"})
      if (const Setting* set = reading_.setting(option); set != nullptr && set->pointer == pointer) return true;
    return false;
  }

  /// What the presence of a class says: stage, unit, precision.
  void follows(const std::string& key, std::string_view stage, std::string_view unit, std::string_view precision) {
    if (reading_.root().find(key) == nullptr) return;
    Leaf first = understood_below(key);
    // A call that says nothing else says that much.
    const std::string call = pointer_part(key);
    if (first.value == nullptr && at(call + "/placement_policy") != nullptr) first = leaf(call + "/placement_policy");
    if (first.value == nullptr && at(call)->is_table() && at(call)->members.empty()) first = leaf(call);
    if (first.value == nullptr) return;
    const auto set = [&](std::string_view option, std::string_view value, Certainty certainty) {
      if (!value.empty() && reading_.setting(option) == nullptr)
        reading_.set(first, option, std::string(value), certainty);
    };
    set("stage", stage, Certainty::stated);
    set("unit", unit, Certainty::stated);
    set("precision", precision, Certainty::assumed);
  }

  void sharded_models() {
    follows("zero", "3", "tensor", "fp16");
    follows("ShardedModelV2", "3", "tensor", "fp16");
  }
  void geminis() {
    for (const std::string_view each : kGeminis) follows(std::string(each), "3", "chunk", "fp16");
  }
  /// ChunkManager.search_chunk_size(model, search_range, n_grids): sizes a step apart.
  void chunk_search() {
    const std::string pointer = "/search_chunk_size/n_grids";
    if (at(pointer) == nullptr) return;
    const Value* const range = at("/search_chunk_size/search_range");
    const std::optional<std::int64_t> grids = whole_in(*at(pointer));
    const std::optional<std::int64_t> elements = range == nullptr ? std::nullopt : whole_in(*range);
    if (!grids || !elements || *grids < 1 || *elements < *grids)
      return reading_.leave(pointer, "it divides search_range, which has to be a larger number");
    reading_.set(leaf(pointer), "search-interval", std::to_string(*elements / *grids));
  }
  void zero_plugins() {
    follows("LowLevelZeroPlugin", "1", "", "fp16");
    follows("TorchDDPPlugin", "0", "", "");
    follows("TorchFSDPPlugin", "3", "module", "");
    if (const Value* offload = at("/LowLevelZeroPlugin/cpu_offload")) {
      if (flag_in(*offload).value_or(false))
        reading_.set(leaf("/LowLevelZeroPlugin/cpu_offload"), "placement", "host");
      else
        reading_.understand("/LowLevelZeroPlugin/cpu_offload");
    }
  }

  /// StaticPlacementPolicy: parts of the three kinds that rest in host memory, and what is sharded again after use.
  Result<void> fractions() {
    for (const char* each : {"/GeminiDDP", "/GeminiPlugin", "/ZeroDDP", ""}) {
      const std::string prefix = each;
      const std::string shard = prefix + "/shard_param_frac";
      if (at(shard) != nullptr)
        if (Result<void> ok = shard_fraction(leaf(shard)); !ok) return ok;
      bool offloads = false;
      for (const auto& [name, option] : {std::pair("/offload_optim_frac", "optimizer-placement"),
                                         std::pair("/offload_param_frac", "param-placement")}) {
        if (at(prefix + name) == nullptr) continue;
        const Leaf fraction = leaf(prefix + name);
        const std::optional<double> share = number_in(*fraction.value);
        if (!share) return reading_.wrong_kind(fraction, "a fraction from 0 to 1");
        if (*share < 0 || *share > 1) return reading_.refused(fraction, "a fraction is from 0 to 1", "1");
        if (like_gemini()) {
          reading_.set(fraction,
                       name == std::string("/offload_optim_frac") ? "offload-optim-frac" : "offload-param-frac",
                       number_text(*share));
        } else if (const Setting* policy = reading_.setting("placement"); policy != nullptr && !offloads) {
          reading_.leave(fraction.pointer, "counts with placement_policy static alone");
        } else if (*share == 0) {
          reading_.understand(fraction.pointer);
        } else {
          offloads = true;
          reading_.set(fraction, option, number_text(1 - *share));
          if (option == std::string("optimizer-placement"))
            reading_.set(fraction, "grad-placement", number_text(1 - *share));
          reading_.set(fraction, "placement", "static");
        }
      }
    }
    return {};
  }

  [[nodiscard]] bool like_gemini() const {
    const std::optional<std::string> like = reading_.given().option("like");
    if (like) return like->starts_with("colossalai-gemini");
    const auto is = [&](std::string_view option, std::string_view value) {
      const Setting* const set = reading_.setting(option);
      return set != nullptr && set->value == value;
    };
    return reading_.given().framework_answers() && is("unit", "chunk") && !is("placement", "auto");
  }

  /// Chunks, and a policy that is no search: what --like colossalai-gemini is told. ZeroDDP is the older of its kinds.
  void as_gemini() {
    reading_.set_framework(reading_.root().find("ZeroDDP") != nullptr ? "colossalai-gemini@0.1.9"
                                                                      : "colossalai-gemini");
    const Setting* const policy = reading_.setting("placement");
    if (policy == nullptr || policy->value != "host") return;
    const Leaf cause = leaf(policy->pointer);
    for (const char* option : {"offload-optim-frac", "offload-param-frac"})
      if (reading_.setting(option) == nullptr) reading_.set(cause, option, "1");
  }

  Result<void> shard_fraction(const Leaf& fraction) {
    const std::optional<double> share = number_in(*fraction.value);
    if (!share) return reading_.wrong_kind(fraction, "a fraction from 0 to 1");
    if (*share < 0 || *share > 1) return reading_.refused(fraction, "a fraction is from 0 to 1", "1");
    if (like_gemini())
      reading_.set(fraction, "shard-param-frac", number_text(*share));
    else if (*share == 1)
      reading_.understand(fraction.pointer);
    else if (*share == 0)
      reading_.set(fraction, "keep-gathered", "true");
    else
      reading_.leave(fraction.pointer, "only 0 and 1 are modelled, but for --like colossalai-gemini@0.5.1");
    return {};
  }

  Result<void> tensor_parallel() {
    const std::string pointer = at("/parallel/tensor/size") != nullptr ? "/parallel/tensor/size" : "/parallel/tensor";
    const Value* const size = at(pointer);
    const Value* const mode = at("/parallel/tensor/mode");
    if (mode != nullptr) {
      const std::string name = lower(mode->text);
      const bool one = mode->kind == Kind::null || name == "1d" || name == "mtp";
      const bool alone = size != nullptr && whole_in(*size) == 1;
      if (one || alone) {
        reading_.understand("/parallel/tensor/mode");
      } else {
        const std::string reason =
            "splits of mode " + shown(*mode) + " are not modelled yet: --tensor-parallel splits in one dimension";
        reading_.leave("/parallel/tensor/mode", reason);
        if (size != nullptr && !size->is_table()) reading_.leave(pointer, reason);
        return {};
      }
    }
    if (size == nullptr || size->is_table()) return {};
    if (size->kind == Kind::null) return reading_.leave(pointer, "not set"), Result<void>();
    const std::optional<std::int64_t> ranks = whole_in(*size);
    if (!ranks) return reading_.wrong_kind(leaf(pointer), "a whole number");
    if (*ranks < 1) return reading_.refused(leaf(pointer), "it is at least 1", "1");
    if (*ranks == 1)
      reading_.understand(pointer);
    else
      reading_.set(leaf(pointer), "tensor-parallel", std::to_string(*ranks));
    return {};
  }

  /// InternEvo: size 1 is none, fewer than 1 all data-parallel ranks.
  Result<void> zero1() {
    const std::string pointer = at("/parallel/zero1/size") != nullptr ? "/parallel/zero1/size" : "/parallel/zero1";
    const Value* const fsdp = at("/parallel/zero1/fsdp");
    if (fsdp != nullptr) {
      if (flag_in(*fsdp).value_or(false))
        reading_.set(leaf("/parallel/zero1/fsdp"), "stage", "3");
      else
        reading_.understand("/parallel/zero1/fsdp");
    }
    const Value* const size = at(pointer);
    if (size == nullptr || size->is_table()) return {};
    const std::optional<std::int64_t> ranks = whole_in(*size);
    if (!ranks) return reading_.wrong_kind(leaf(pointer), "a whole number");
    if (reading_.setting("stage") != nullptr)
      reading_.understand(pointer);
    else
      reading_.set(leaf(pointer), "stage", *ranks == 1 ? "0" : "1");
    return {};
  }

  void lightning() {
    for (const char* base : {"/lightning/trainer/strategy/", "/lightning/trainer/strategy/params/"}) {
      const std::string use = std::string(base) + "use_chunk";
      if (const Value* chunk = at(use)) {
        reading_.set(leaf(use), "stage", "3");
        reading_.set(leaf(use), "unit", flag_in(*chunk).value_or(true) ? "chunk" : "tensor");
      }
      const std::string storage = std::string(base) + "enable_distributed_storage";
      if (const Value* distributed = at(storage)) {
        const std::optional<bool> on = flag_in(*distributed);
        if (on && !*on)
          reading_.set(leaf(storage), "distributed-storage", "false");
        else if (on)
          reading_.understand(storage);
        else
          reading_.leave(storage, shown(*distributed) + " is a text, which Python takes for true");
      }
    }
    if (at("/lightning/trainer/strategy/target") != nullptr) reading_.understand("/lightning/trainer/strategy/target");
  }

  void pinned() {
    for (const Leaf& each : leaves(reading_.root())) {
      if (!each.pointer.ends_with("/pin_memory")) continue;
      if (flag_in(*each.value).value_or(true))
        reading_.understand(each.pointer);
      else
        reading_.leave(each.pointer, "host memory is always pinned here");
    }
  }

  Result<void> batches() {
    const auto first = [&](std::initializer_list<const char*> keys) -> std::string {
      std::string found;
      for (const char* key : keys) {
        if (at(key) == nullptr) continue;
        if (found.empty())
          found = key;
        else
          reading_.leave(key, found + " counts");
      }
      return found;
    };
    return settle_batches(
        reading_,
        {.micro = first({"/BATCH_SIZE", "/batch_size", "/micro_batch_size", "/b", "/data/micro_bsz"}),
         .accumulation = first({"/gradient_accumulation", "/gradient_accumulation_size", "/accumulation_steps",
                                "/gradient_accumulation_steps", "/data/gradient_accumulation", "/data/micro_num"}),
         .whole = ""});
  }

  /// InternEvo's model = dict(...): a llama, where it has no biases.
  Result<void> model() {
    const Value* const table = reading_.root().find("model");
    if (table == nullptr || !table->is_table()) return {};
    const auto number = [&](const char* key) {
      const Value* const value = table->find(key);
      const std::optional<std::int64_t> whole = value == nullptr ? std::nullopt : whole_in(*value);
      return whole && *whole > 0 && *whole < (std::int64_t{1} << 31) ? whole : std::nullopt;
    };
    const auto rest = [&](const std::string& reason) {
      for (const Leaf& each : leaves(reading_.root()))
        if (each.pointer.starts_with("/model/") && each.pointer != "/model/type" &&
            each.pointer != "/model/checkpoint" && each.pointer != "/model/dtype")
          reading_.leave(each.pointer, reason);
    };
    if (const std::optional<std::string> given = reading_.given().option("model"))
      return rest("--model " + *given + " says it"), Result<void>();
    const auto layers = number("num_layers");
    const auto hidden = number("hidden_size");
    const auto heads = number("num_attention_heads");
    const auto vocabulary = number("vocab_size");
    const Value* const ratio = table->find("mlp_ratio");
    const double times = ratio == nullptr ? 0 : number_in(*ratio).value_or(0);  // 0: not said
    const Value* const no_bias = table->find("no_bias");
    const bool plain = no_bias != nullptr && flag_in(*no_bias).value_or(false);
    if (!layers || !hidden || !heads || !vocabulary || !(times > 0 && times < 100) || !plain) {
      rest("a kind of model that these numbers do not describe here: give --model");
      return {};
    }
    if (*hidden % *heads != 0)
      return reading_.refused(leaf("/model/num_attention_heads"),
                              "it does not divide hidden_size " + std::to_string(*hidden), "a divisor of it");
    // InternEvo rounds the MLP's width up to a multiple of 256.
    const auto width = static_cast<std::int64_t>(static_cast<double>(*hidden) * times);
    const nlohmann::ordered_json config{{"model_type", "llama"},
                                        {"hidden_size", *hidden},
                                        {"num_hidden_layers", *layers},
                                        {"num_attention_heads", *heads},
                                        {"num_key_value_heads", number("num_kv_attention_heads").value_or(*heads)},
                                        {"intermediate_size", (width + 255) / 256 * 256},
                                        {"vocab_size", *vocabulary},
                                        {"max_position_embeddings", 32768},
                                        {"tie_word_embeddings", false}};
    for (const char* key :
         {"hidden_size", "num_attention_heads", "num_kv_attention_heads", "vocab_size", "mlp_ratio", "no_bias"})
      if (table->find(key) != nullptr) reading_.understand("/model/" + std::string(key));
    reading_.set(leaf("/model/num_layers"), "model", config.dump(), Certainty::assumed);
    for (const Leaf& each : leaves(reading_.root())) {
      const std::string key = each.pointer.substr(each.pointer.rfind('/') + 1);
      constexpr std::string_view kUsed[] = {"hidden_size",
                                            "num_attention_heads",
                                            "num_kv_attention_heads",
                                            "vocab_size",
                                            "mlp_ratio",
                                            "no_bias",
                                            "num_layers",
                                            "type",
                                            "checkpoint",
                                            "dtype"};
      if (each.pointer.starts_with("/model/") && std::ranges::find(kUsed, key) == std::end(kUsed))
        reading_.leave(each.pointer, "of InternEvo's code for the model: the numbers beside it say what is predicted");
    }
    return {};
  }

  Reading& reading_;
};

}  // namespace

Result<void> settle_colossalai(Reading& reading) {
  return ColossalSettling(reading).run();
}

}  // namespace shard::foreign
