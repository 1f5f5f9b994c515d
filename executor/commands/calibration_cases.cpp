// Models of five shapes, narrow to wide, and the strategies that bring the collectives.
#include "executor/commands/calibration_cases.h"

#include <array>
#include <utility>

namespace shard::commands {
namespace {

using Words = std::vector<std::string>;

/// A model with the options that its size asks for.
struct Shape {
  const char* model;
  Words words;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> kShapes{
      {"narrow", {"--sequence", "128", "--micro-batch", "2"}},
      {"middle", {"--sequence", "256"}},
      {"wide", {"--sequence", "128"}},
      {"layers", {"--micro-batch", "24"}},
      {"rotary", {"--sequence", "192"}},
  };
  return kShapes;
}

/// Strategies of several ranks: each collective with units from a tensor to a block.
const std::vector<Words>& strategies() {
  static const std::vector<Words> kStrategies{
      {"--stage", "0"},
      {"--stage", "3", "--unit", "module"},
      {"--stage", "1", "--unit", "tensor"},
      {"--stage", "2", "--unit", "module"},
      {"--stage", "0", "--partition", "flat"},
  };
  return kStrategies;
}

CalibrationCase made(const Shape& shape, int ranks, int threads, const Words& more) {
  CalibrationCase c{.model = shape.model, .arguments = shape.words, .ranks = ranks, .threads = threads};
  for (const char* word : {"--ranks", "--threads"}) {
    c.arguments.emplace_back(word);
    c.arguments.push_back(std::to_string(std::string_view(word) == "--ranks" ? ranks : threads));
  }
  c.arguments.insert(c.arguments.end(), more.begin(), more.end());
  return c;
}

}  // namespace

std::span<const CalibrationModel> calibration_models() {
  static const std::array<CalibrationModel, 5> kModels{{
      {"narrow", R"({"model_type": "gpt2", "vocab_size": 512, "n_positions": 256, "n_embd": 96, "n_layer": 3,
 "n_head": 6, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": true})"},
      {"middle", R"({"model_type": "gpt2", "vocab_size": 4096, "n_positions": 256, "n_embd": 320, "n_layer": 2,
 "n_head": 5, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": true})"},
      {"wide", R"({"model_type": "gpt2", "vocab_size": 32000, "n_positions": 256, "n_embd": 896, "n_layer": 2,
 "n_head": 14, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": true})"},
      {"layers", R"({"model_type": "mlp", "sizes": [1600, 1600, 2400, 2400, 600, 600], "bias": true, "loss": "mse"})"},
      {"rotary", R"({"model_type": "llama", "vocab_size": 2048, "max_position_embeddings": 256, "hidden_size": 192,
 "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 6,
 "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "initializer_range": 0.02,
 "attention_bias": false, "tie_word_embeddings": false})"},
  }};
  return kModels;
}

std::vector<CalibrationCase> calibration_cases(int cores, bool starts_ranks) {
  std::vector<CalibrationCase> cases;
  for (std::size_t i = 0; i < shapes().size(); ++i) {
    const Shape& shape = shapes()[i];
    const bool mlp = std::string_view(shape.model) == "layers";
    for (const char* precision : {"fp32", "bf16"}) {
      const Words as{"--precision", precision};
      const auto with = [&](Words words) {
        words.insert(words.end(), as.begin(), as.end());
        return words;
      };
      cases.push_back(made(shape, 1, 1, as));
      if (cores == 1) continue;
      if (starts_ranks) cases.push_back(made(shape, cores, 1, with(strategies()[i])));
      cases.push_back(made(shape, 1, cores, as));
      if (starts_ranks) cases.push_back(made(shape, cores, 1, with(strategies()[(i + 1) % strategies().size()])));
    }
    if (!mlp && i < 2) cases.push_back(made(shape, 1, 1, {"--dropout", "0.1", "--clip-norm", "1"}));
  }
  // Two micro-steps a rank accumulate; host memory brings copies.
  const Shape& narrow = shapes().front();
  const Shape& middle = shapes()[1];
  cases.push_back(made(middle, 1, 1, {"--global-batch", "2"}));
  cases.push_back(made(narrow, 1, 1, {"--placement", "host"}));
  cases.push_back(made(middle, 1, 1, {"--placement", "host"}));
  if (cores > 1 && starts_ranks) {
    const std::string batch = std::to_string(2 * cores);
    cases.push_back(made(middle, cores, 1, {"--global-batch", batch, "--stage", "2", "--unit", "chunk"}));
    cases.push_back(made(narrow, cores, 1, {"--placement", "host", "--stage", "3", "--unit", "chunk"}));
  }
  return cases;
}

}  // namespace shard::commands
