// Random small models and the strategies that fit them.
#pragma once

#include <array>
#include <random>
#include <string>
#include <vector>

#include "sim/model/freeze.h"
#include "tests/compile/support.h"

namespace shard::plan {

class RandomCases {
 public:
  explicit RandomCases(unsigned seed) : random_(seed) {}

  std::int64_t upto(std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random_); }
  bool flag() { return upto(2) == 1; }

  ModelPtr model() {
    const auto field = [](const char* key, std::int64_t value) {
      return std::string(", \"") + key + "\": " + std::to_string(value);
    };
    const auto choice = [&](const char* key) {
      return std::string(", \"") + key + "\": " + (flag() ? "true" : "false");
    };
    const std::int64_t family = upto(3);
    if (family == 1) {
      const std::int64_t heads = upto(3);
      return model_from(R"({"model_type": "gpt2")" + field("n_head", heads) + field("n_embd", heads * upto(5)) +
                        field("n_layer", upto(3)) + field("n_inner", upto(20)) + field("vocab_size", upto(30)) +
                        field("n_positions", 8) + choice("tie_word_embeddings") + "}");
    }
    if (family == 2) {
      const std::int64_t kv = upto(2);
      const std::int64_t heads = kv * upto(2);
      const std::int64_t head_dim = 2 * upto(3);
      return model_from(R"({"model_type": "llama")" + field("num_attention_heads", heads) +
                        field("num_key_value_heads", kv) + field("hidden_size", heads * head_dim) +
                        field("intermediate_size", upto(20)) + field("num_hidden_layers", upto(3)) +
                        field("vocab_size", upto(30)) + field("max_position_embeddings", 8) +
                        choice("tie_word_embeddings") + choice("attention_bias") + choice("mlp_bias") + "}");
    }
    std::string sizes = std::to_string(upto(12));
    for (std::int64_t i = upto(5); i > 0; --i) sizes += ", " + std::to_string(upto(12));
    return model_from(R"({"model_type": "mlp", "sizes": [)" + sizes + R"(], "bias": )" + (flag() ? "true" : "false") +
                      R"(, "loss": ")" + (flag() ? "mse" : "cross_entropy") + "\"}");
  }

  Share share(bool disk) {
    switch (upto(disk ? 4 : 3)) {
      case 1: return kOnDevice;
      case 2: return kOnHost;
      case 3: return {.on_device = static_cast<double>(upto(9)) / 10, .rest = Memory::host};
      default: return kOnDisk;
    }
  }
  Placement placement() {
    Placement p;
    const auto policy = upto(4);
    p.policy = policy == 1 ? PlacementPolicy::automatic : policy == 2 ? PlacementPolicy::host : PlacementPolicy::fixed;
    if (policy == 1) p.device_capacity = Bytes{upto(64) * 1024};
    if (policy == 1 && flag()) p.margin_ratio = 0.5;
    if (flag()) p.parameters = share(false);
    if (flag()) p.gradients = share(false);
    if (flag()) p.optimizer = share(true);
    return p;
  }

  Strategy strategy(const model::Model& model) {
    Strategy s;
    s.world_size = static_cast<std::int32_t>(upto(8));
    s.stage = static_cast<std::int32_t>(upto(4)) - 1;
    s.unit = static_cast<UnitKind>(upto(4) - 1);
    if (s.stage == 1 && flag()) s.partition = Partition::parameter;
    if (s.stage > 0 && s.partition == Partition::flat && s.world_size % 2 == 0 && flag())
      s.shard_group = s.world_size % 4 == 0 && flag() ? 4 : 2;
    s.precision = static_cast<Precision>(upto(3) - 1);
    s.fp32_reduce_scatter = s.has_masters() && flag();
    s.clip_norm = flag();
    s.loss_scaling = upto(4) == 1;
    if (upto(4) == 1) s.predivide = 2.0f;
    if (s.stage > 0 && s.partition == Partition::flat && flag()) s.ownership = Ownership::rank;
    s.chunk_per_tensor = s.unit == UnitKind::chunk && upto(4) == 1;
    s.keep_gathered = s.stage == 3 && flag();
    if (s.stage >= 2 && s.ownership == Ownership::split && flag()) s.bucket_mib = 1;
    if (s.unit == UnitKind::chunk && s.ownership == Ownership::split && s.shard_group == 0 && s.bucket_mib == 0 &&
        s.partition == Partition::flat && !s.keep_gathered)
      s.distributed = upto(4) != 1;
    if (s.precision == Precision::fp32 && upto(4) == 1) s.precision = Precision::tf32;
    if (s.unit == UnitKind::chunk) s.chunk_elems = Elems{s.shard_degree() * upto(300 / s.shard_degree())};
    s.micro_batch = upto(2);
    s.global_batch = s.micro_batch * s.world_size * upto(8);
    if (s.stage == 3 && s.has_masters() && !s.fp32_reduce_scatter && s.distributed && flag()) {
      s.reuse_shard = true;
      s.global_batch = s.micro_batch * s.world_size;
    }
    s.sequence = model.family == model::Family::mlp ? 1 : upto(8);
    s.recompute = static_cast<Recompute>(upto(3) - 1);
    s.optimizer = static_cast<OptimizerKind>(upto(3) - 1);
    if (upto(4) == 1) s.dropout = 0.1F;
    s.prefetch = static_cast<std::int32_t>(upto(4)) - 1;
    s.threads = static_cast<std::int32_t>(upto(3));
    s.reproducible = upto(4) != 1;
    s.transport = flag() ? Transport::shared : Transport::messages;
    if (flag()) s.placement = placement();
    if (s.reuse_shard && s.placement.parameters) s.placement.gradients = s.placement.parameters;
    if (upto(3) == 1) s.freeze = some_of(model.parameters);
    if (s.unit == UnitKind::chunk && !s.chunk_per_tensor && flag()) vary_chunks(s, model);
    return s;
  }

  /// Chunks of their own sizes, cut anywhere, for what the strategy freezes.
  void vary_chunks(Strategy& s, const model::Model& model) {
    const Result<model::Model> frozen = model::freeze(model, s.freeze);
    s.chunk_starts.clear();
    if (!frozen) return;
    const std::int64_t chunk = upto(4);
    std::array<bool, 2> begun{};
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      const auto id = static_cast<std::int32_t>(p);
      bool& has_begun = begun[frozen->is_frozen(model::ParamId{id})];
      if (!has_begun || upto(chunk) == 1) s.chunk_starts.push_back(id);
      has_begun = true;
    }
  }

 private:
  /// The names of some parameters, never of all.
  std::vector<std::string> some_of(const ParameterList& parameters) {
    std::vector<std::string> names;
    const auto count = static_cast<std::int64_t>(parameters.size());
    const std::int64_t spared = upto(count) - 1;
    // From the front on, as users freeze, or here and there.
    const std::int64_t front = flag() ? upto(count) : 0;
    for (std::int64_t p = 0; p < count; ++p)
      if (p != spared && (front > 0 ? p < front : flag()))
        names.push_back(parameters[static_cast<std::size_t>(p)].name);
    return names;
  }

  std::mt19937 random_;
};

}  // namespace shard::plan
