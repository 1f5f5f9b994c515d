// The trainings on a GPU: one rank, ranks that share it, offloading; and a few small ones for an emulated GPU.
#include <algorithm>
#include <array>
#include <utility>

#include "executor/commands/calibration_cases.h"

namespace shard::commands {
namespace {

using DeviceWords = std::vector<std::string>;

CalibrationCase on_device(bool emulated, const char* model, int ranks, DeviceWords words) {
  const bool offloads = std::string_view(words.back()) == "host";
  CalibrationCase c{.model = model,
                    .arguments = {"--device", emulated ? "emulated-cuda" : "cuda", "--ranks", std::to_string(ranks)},
                    .ranks = ranks,
                    .threads = 1,
                    .serial = ranks == 1 && !offloads,
                    .graphs = true};
  c.arguments.insert(c.arguments.end(), words.begin(), words.end());
  return c;
}

/// Shapes from what is bound by launches to what fills a large GPU.
struct DeviceShape {
  const char* model;
  DeviceWords words;
};
const std::array<DeviceShape, 5>& device_shapes() {
  static const std::array<DeviceShape, 5> kShapes{{{"small", {"--sequence", "1024", "--micro-batch", "4"}},
                                                   {"nano", {"--sequence", "256", "--micro-batch", "8"}},
                                                   {"large", {"--sequence", "1024", "--micro-batch", "4"}},
                                                   {"rotary", {"--sequence", "1024", "--micro-batch", "4"}},
                                                   {"layers", {"--micro-batch", "1024"}}}};
  return kShapes;
}

}  // namespace

std::span<const CalibrationModel> device_models(bool emulated) {
  static const std::array<CalibrationModel, 5> kGpu{{
      {"nano", R"({"model_type": "gpt2", "vocab_size": 4096, "n_positions": 256, "n_embd": 256, "n_layer": 2,
 "n_head": 4, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": true})"},
      {"small", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 2,
 "n_head": 12, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": true})"},
      {"large", R"({"model_type": "gpt2", "vocab_size": 16384, "n_positions": 1024, "n_embd": 1600, "n_layer": 2,
 "n_head": 25, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": true})"},
      {"rotary", R"({"model_type": "llama", "vocab_size": 32000, "max_position_embeddings": 1024, "hidden_size": 1024,
 "intermediate_size": 2816, "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 16,
 "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "initializer_range": 0.02,
 "attention_bias": false, "tie_word_embeddings": false})"},
      {"layers", R"({"model_type": "mlp", "sizes": [2048, 4096, 4096, 8192, 1024], "bias": true, "loss": "mse"})"},
  }};
  static const std::array<CalibrationModel, 1> kEmulated{{
      {"tiny", R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 32, "n_layer": 1,
 "n_head": 2, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": true})"},
  }};
  return emulated ? std::span<const CalibrationModel>(kEmulated) : std::span<const CalibrationModel>(kGpu);
}

std::vector<CalibrationCase> device_cases(bool emulated, int devices) {
  std::vector<CalibrationCase> cases;
  const auto add = [&](const char* model, int ranks, DeviceWords words, const DeviceWords& more) {
    if (devices > 1) ranks = std::min(ranks, devices);
    words.insert(words.end(), more.begin(), more.end());
    cases.push_back(on_device(emulated, model, ranks, std::move(words)));
  };
  if (emulated) {
    add("tiny", 1, {"--sequence", "16"}, {});
    add("tiny", 2, {"--sequence", "16"}, {"--stage", "3", "--unit", "module"});
    add("tiny", 1, {"--sequence", "16"}, {"--precision", "bf16"});
    add("tiny", 1, {"--sequence", "16"}, {"--placement", "host"});
    return cases;
  }
  const auto& shapes = device_shapes();
  for (const char* precision : {"bf16", "fp32"})
    for (const DeviceShape& shape : shapes) add(shape.model, 1, shape.words, {"--precision", precision});
  // Each collective, with units from a tensor to a block.
  const std::array<DeviceWords, 4> strategies{{{"--stage", "3", "--unit", "module"},
                                               {"--stage", "1", "--unit", "tensor"},
                                               {"--stage", "2", "--unit", "chunk"},
                                               {"--stage", "0"}}};
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    const DeviceShape& shape = shapes[i % 2];
    add(shape.model, 2, shape.words, strategies[i]);
    add(shape.model, i % 2 == 0 ? 4 : 2, shape.words, [&] {
      DeviceWords words = strategies[i];
      words.insert(words.end(), {"--precision", "bf16"});
      return words;
    }());
  }
  add("small", 1, shapes[0].words, {"--precision", "fp16"});
  add("small", 1, shapes[0].words, {"--precision", "bf16", "--placement", "host"});
  add("nano", 1, shapes[1].words, {"--placement", "host"});
  add("nano", 2, shapes[1].words, {"--stage", "3", "--unit", "chunk", "--placement", "host"});
  add("nano", 1, shapes[1].words, {"--dropout", "0.1", "--clip-norm", "1"});
  add("small", 1, shapes[0].words, {"--precision", "bf16", "--global-batch", "8", "--clip-norm", "1"});
  return cases;
}

}  // namespace shard::commands
