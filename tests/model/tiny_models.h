// Models of a few thousand parameters whose sizes differ from each other, to train in no time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tests/model/make_model.h"

namespace shard {

using ModelPtr = std::shared_ptr<const model::Model>;

inline ModelPtr tiny_model(std::string_view json) {
  return std::make_shared<const model::Model>(model::make_model(json));
}

/// Vocabularies that neither 2 nor 4 divides, heads in groups, biases everywhere that the family has them.
inline ModelPtr tiny_gpt2(bool tied) {
  return tiny_model(
      R"({"model_type": "gpt2", "vocab_size": 37, "n_positions": 8, "n_embd": 16, "n_layer": 2, "n_head": 4,
                        "initializer_range": 0.2, "tie_word_embeddings": )" +
      std::string(tied ? "true}" : "false}"));
}
inline ModelPtr tiny_llama(bool tied) {
  return tiny_model(R"({"model_type": "llama", "vocab_size": 41, "hidden_size": 16, "intermediate_size": 24,
                        "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
                        "max_position_embeddings": 8, "attention_bias": true, "mlp_bias": true,
                        "initializer_range": 0.2, "tie_word_embeddings": )" +
                    std::string(tied ? "true}" : "false}"));
}

}  // namespace shard
