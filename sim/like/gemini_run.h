// What Gemini's hooks do in every version: a step of operators over chunks. Which chunk goes where is the version's.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/like/gemini_chunks.h"
#include "sim/like/gemini_passes.h"
#include "sim/like/gemini_states.h"

namespace shard::like {

class GeminiRun {
 public:
  GeminiRun(const GeminiRun&) = delete;
  GeminiRun& operator=(const GeminiRun&) = delete;

  /// Creation and both forms of the step. Once.
  [[nodiscard]] GeminiPlan run();

 protected:
  GeminiRun(GeminiStep step, ChunkLayout layout, const GeminiOptions& options, const std::vector<ChunkOps::Kept>& kept);
  ~GeminiRun() = default;

  virtual void create() = 0;
  /// Before an op, whose tensors are in use by then.
  virtual void make_room() = 0;
  virtual void access(std::size_t chunk) = 0;
  /// All its gradients are there.
  virtual void reduce(std::size_t chunk) = 0;
  virtual void step_optimizer(std::size_t chunk) = 0;
  /// Of the op that ran, and at the end of forward and backward.
  virtual void used(const std::vector<std::size_t>&) {}
  virtual void end_of_pass() {}
  /// What a version says of its plan besides.
  virtual void describe(GeminiPlan& plan) const = 0;

  GeminiOptions options_;
  ChunkLayout layout_;
  TensorStates states_;
  ChunkOps chunks_;

 private:
  void train();
  void pre_op(const HookedOp& op);
  void post_op(const HookedOp& op, bool forward);
};

}  // namespace shard::like
