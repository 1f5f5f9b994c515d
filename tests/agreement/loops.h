// Trained states that run every loop of the executor that is compiled once per instruction set.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/agreement/in_process_run.h"
#include "tests/model/tiny_models.h"

namespace shard {

/// SHA-256 of what each trains to, by name; an error's text where one fails. Loops take whole vectors and a tail.
inline std::map<std::string, std::string> loop_digests() {
  const auto gpt2 = tiny_model(
      R"({"model_type": "gpt2", "vocab_size": 83, "n_positions": 24, "n_embd": 60, "n_layer": 2, "n_head": 3})");
  const auto llama = tiny_model(
      R"({"model_type": "llama", "vocab_size": 90, "max_position_embeddings": 24, "hidden_size": 72,
          "intermediate_size": 110, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2})");
  const auto mlp = tiny_model(R"({"model_type": "mlp", "sizes": [30, 50, 70, 10]})");
  const plan::Strategy sharded{.world_size = 2,
                               .stage = 3,
                               .micro_batch = 2,
                               .global_batch = 8,
                               .sequence = 24,
                               .recompute = plan::Recompute::selective,
                               .placement = {.policy = plan::PlacementPolicy::host}};
  std::map<std::string, std::string> digests;
  const auto train = [&](const std::string& name, const auto& model, plan::Strategy strategy) {
    const train::SessionOptions options{.steps = 3,
                                        .scalars = {.weight_decay = 0.01},
                                        .knobs = {.scaler = {.initial_scale = 1024}, .max_norm = 0.5F},
                                        .seed = 5,
                                        .after_step = {},
                                        .before_phase = {},
                                        .disk_path = std::filesystem::temp_directory_path().string()};
    const auto run = run_in_process(model, strategy, options);
    digests[name] = run ? run->ranks[0].state_sha256 : to_string(run.error());
  };
  for (const plan::Precision precision : {plan::Precision::fp32, plan::Precision::bf16, plan::Precision::fp16}) {
    plan::Strategy strategy = sharded;
    strategy.precision = precision;
    strategy.clip_norm = true;
    strategy.dropout = 0.1F;
    train(std::string("gpt2 ") + to_string(precision), gpt2, strategy);
    strategy.dropout = 0;
    train(std::string("llama ") + to_string(precision), llama, strategy);
    strategy.tensor_parallel = 2;
    train(std::string("llama in halves ") + to_string(precision), llama, strategy);
  }
  plan::Strategy samples = sharded;
  samples.sequence = 1;
  samples.recompute = plan::Recompute::none;
  for (const plan::OptimizerKind optimizer :
       {plan::OptimizerKind::sgd, plan::OptimizerKind::adam, plan::OptimizerKind::adamw}) {
    samples.optimizer = optimizer;
    train(std::string("mlp ") + to_string(optimizer), mlp, samples);
  }
  return digests;
}

}  // namespace shard
