// Which code a model of transformers is.
#include <algorithm>
#include <array>
#include <string_view>

#include "sim/like/eager/families.h"

namespace shard::like::eager {
namespace {

struct ModelCode {
  std::string_view class_name;
  std::unique_ptr<Program> (*program)(Runtime&, const model::Model&, const ProgramOptions&);
};
constexpr std::array kCodes{ModelCode{"GPT2LMHeadModel", gpt2_program}, ModelCode{"LlamaForCausalLM", llama_program},
                            ModelCode{"MistralForCausalLM", llama_program},
                            ModelCode{"Qwen2ForCausalLM", llama_program}, ModelCode{"Qwen3ForCausalLM", llama_program}};

const ModelCode* code_of(const model::Model& model) {
  const auto found = std::ranges::find(kCodes, model.class_name, &ModelCode::class_name);
  return found == kCodes.end() ? nullptr : &*found;
}

}  // namespace

bool has_hugging_face_program(const model::Model& model) {
  return code_of(model) != nullptr;
}

std::unique_ptr<Program> hugging_face_program(Runtime& runtime, const model::Model& model,
                                              const ProgramOptions& options) {
  return code_of(model)->program(runtime, model, options);
}

}  // namespace shard::like::eager
