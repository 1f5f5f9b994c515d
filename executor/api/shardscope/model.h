// A model to train: what a Hugging Face config.json, or a name, says of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <shardscope/export.h>
#include <shardscope/result.h>

namespace shardscope {

/// A description; it holds no weights. Copies share it, and moving copies: one that was moved from can still be asked.
class SHARDSCOPE_API Model {
 public:
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;
  ~Model() = default;

  /// `what` is what --model takes: a name ("gpt2-nano", "gpt2-medium", "llama-3.1-8b"), a config.json, its directory,
  /// or such a text itself, which begins with "{": {"model_type": "gpt2", "n_layer": 2, ...}.
  [[nodiscard]] static Result<Model> open(const std::string& what);

  [[nodiscard]] const std::string& name() const;
  /// Tied weights count once.
  [[nodiscard]] std::int64_t parameter_elements() const;
  /// 0 where inputs are not tokens.
  [[nodiscard]] std::int64_t vocabulary() const;
  /// In tokens; 0 where there is no limit.
  [[nodiscard]] std::int64_t longest_sequence() const;

 private:
  friend class Plan;
  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace shardscope
