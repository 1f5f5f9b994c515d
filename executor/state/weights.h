// Weights that a model begins with, out of safetensors files: which tensor is which parameter, and reading parts of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// The files of weights that `argument` stands for: a file, or a folder as Hugging Face's libraries lay it out
/// (model.safetensors, else model.safetensors.index.json and what it names). Nothing is checked: for knowing which
/// files a command reads.
[[nodiscard]] std::vector<std::filesystem::path> weights_files(const std::string& argument);

/// Open files, each parameter of one model found in them. Reading is safe from several threads.
class Weights {
 public:
  /// `argument`: model.safetensors, model.safetensors.index.json, or the folder of either. Only headers are read;
  /// nothing is allocated for tensors. `model`: a whole one, or a tensor-parallel rank's part.
  ///
  /// A tensor is the parameter of its name; the prefix of the class ("transformer.") may be absent, as where the base
  /// model was saved. Where embeddings are tied, the head's tensor may be there, too, or instead. Constants that older
  /// versions of transformers saved (causal masks, inverse frequencies) are passed over.
  /// Errors: no_input (absent, no regular file); malformed (as parse_header, a shard that is missing, a tensor where
  /// the index does not say it); contradiction: the first parameter, in the model's order, that no tensor is for, whose
  /// tensor has another shape, or a dtype that is not F32, F16 or BF16; tensors that are no parameter.
  [[nodiscard]] static Result<Weights> open(const std::string& argument, const model::Model& model);

  Weights(Weights&&) noexcept;
  Weights& operator=(Weights&&) noexcept;
  ~Weights();

  /// Elements of the whole parameter from number `first` on, widened to fp32 without loss. Errors: io; malformed where
  /// the file is shorter than it was.
  [[nodiscard]] Result<void> read(model::ParamId param, std::int64_t first, std::span<float> values) const;
  /// What n elements of it take in the file: what read() reads.
  [[nodiscard]] Bytes stored(model::ParamId param, std::int64_t n) const;

  /// For people: which tensor it is, of which file.
  [[nodiscard]] std::string tensor_of(model::ParamId param) const;
  [[nodiscard]] std::string file_of(model::ParamId param) const;

  /// For people: "gpt2/model.safetensors, 148 tensors, F32".
  [[nodiscard]] std::string describe() const;
  /// What was taken for what, and what was passed over.
  [[nodiscard]] const std::vector<std::string>& notes() const;
  /// Equal for files of equal headers and sizes.
  [[nodiscard]] const std::string& fingerprint() const;
  [[nodiscard]] std::size_t tensors() const;
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const;

 private:
  struct State;
  explicit Weights(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shard
