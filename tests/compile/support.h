// Small models and strategies for plan tests, and plans as words.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "sim/compile/compile.h"
#include "sim/ir/text.h"
#include "tests/model/make_model.h"

namespace shard::plan {

using ModelPtr = std::shared_ptr<const model::Model>;

inline ModelPtr model_from(std::string_view json) {
  return std::make_shared<const model::Model>(model::make_model(json));
}

/// Two linear layers, 6 -> 5 -> 3.
inline ModelPtr two_layers() {
  return model_from(R"({"model_type": "mlp", "sizes": [6, 5, 3]})");
}
/// Two blocks, tied embeddings.
inline ModelPtr small_gpt2() {
  return model_from(
      R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2})");
}
inline ModelPtr small_llama() {
  return model_from(
      R"({"model_type": "llama", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 8})");
}

inline PlanSet compiled(const ModelPtr& model, const Strategy& strategy) {
  Result<PlanSet> plans = compile(model, strategy);
  if (!plans) {
    ADD_FAILURE() << to_string(plans.error());
    return {};
  }
  return std::move(*plans);
}

inline Plan compiled_until(const ModelPtr& model, const Strategy& strategy, std::string_view pass) {
  Result<Plan> plan = compile_until(model, strategy, pass);
  if (!plan) {
    ADD_FAILURE() << to_string(plan.error());
    return {};
  }
  return std::move(*plan);
}

/// The names of a phase's ops in plan order, " | " between them.
inline std::string words(const Plan& plan, Phase phase = Phase::steady_step) {
  std::string text;
  const PhaseOps* ops = plan.find(phase);
  if (ops == nullptr) return "no such phase";
  for (const Op& op : ops->ops) text.append(text.empty() ? "" : " | ").append(op.name);
  return text;
}

}  // namespace shard::plan
