// The graph that forward leaves behind, and the engine that runs it backward.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "sim/like/eager/tensor.h"

namespace shard::like::eager {

using Tensors = std::vector<Tensor>;

/// From the gradients of an operator's results to those of its inputs, an empty tensor for each input that needs none.
using Backward = std::function<Tensors(const Tensors& gradients)>;

/// What autograd knows of the input of an operator.
struct Edge {
  Source to{};  ///< node -1: no gradient is wanted
  Dims sizes{};
  Scalar scalar = Scalar::f32;
};

/// Sums a gradient to a smaller size, or casts it: what the engine asks of operators.
class Fitting {
 public:
  virtual ~Fitting() = default;
  virtual Tensor sum_to(const Tensor& gradient, const Dims& sizes) = 0;
  virtual Tensor cast(const Tensor& gradient, Scalar scalar) = 0;
  /// A sum of two gradients in new memory.
  virtual Tensor add(const Tensor& a, const Tensor& b) = 0;
  /// In new memory that lies as the parameter does.
  virtual Tensor clone_as(const Tensor& gradient, const Tensor& parameter) = 0;
};

/// A part of forward whose inner tensors are made again in backward (torch/utils/checkpoint.py without reentrance):
/// saved tensors become promises, which the part's second run keeps as soon as the first of them is asked for. That run
/// ends with the last promise.
struct Checkpoint {
  std::function<void()> again{};      ///< runs the part again
  std::vector<std::int32_t> nodes{};  ///< those that saved something, in order
  std::size_t kept = 0;               ///< promises, in the second run
  bool ran = false;                   ///< the second run has begun
};

/// torch/csrc/autograd/engine.cpp and input_buffer.cpp: nodes by their age, the youngest first; gradients that meet are
/// summed in place where nobody else holds the first; what a node saved dies when it has run.
class Graph {
 public:
  /// Of parameters: their gradients, empty where there are none.
  Graph(Tape& tape, std::size_t parameters) : tape_(tape), gradients_(parameters), collectors_(parameters, -1) {}

  /// Of an input of an operator.
  [[nodiscard]] Edge edge(const Tensor& input);
  /// Makes `output` the result of a node.
  void record(Tensor& output, std::vector<Edge> inputs, Backward backward);
  void record(std::vector<Tensor*> outputs, std::vector<Edge> inputs, Backward backward);

  /// What runs before the node that `output` is a result of does, once its gradient is complete (Tensor.register_hook).
  void before(const Tensor& output, std::function<void()> hook);

  /// `loss` and `root`, its gradient, are the caller's. What is left of the graph goes at the end.
  void run(const Tensor& loss, const Tensor& root, const Tensors& parameters, Fitting& fitting);

  /// What is recorded until end_checkpoint() belongs to `part`, which nodes share and drop when they have run.
  void begin_checkpoint(std::shared_ptr<Checkpoint> part) { part_ = std::move(part); }
  void end_checkpoint() { part_ = nullptr; }
  /// For an operator that saves only operands: ATen saves them before its kernel runs. Of the second run of a
  /// checkpointed part nothing follows the last of them.
  void before_kernel() {
    if (again_ && again_->kept + 1 == again_->nodes.size()) tape_.mute(true);
  }
  /// While the second run of a part's forward goes on nothing is recorded.
  [[nodiscard]] bool in_second_run() const { return again_ != nullptr; }

  [[nodiscard]] Tensors& gradients() { return gradients_; }
  /// Gradients of a parameter that meet are summed on the stream that made it.
  void sum_parameters_on(std::uint8_t stream) { parameters_stream_ = stream; }
  /// What runs when a parameter has its gradient, which lives until then (register_post_accumulate_grad_hook).
  void after_collecting(std::function<void(std::size_t parameter)> hook) { collected_ = std::move(hook); }

 private:
  struct Node {
    std::vector<Edge> inputs;
    Backward backward;
    std::int32_t outputs = 1;
    std::int32_t parameter = -1;  ///< a collector of this parameter's gradient
    Place place{};                ///< where forward was
    std::vector<std::function<void()>> hooks{};
    std::shared_ptr<Checkpoint> part{};
  };
  struct Run;

  void run_again(const std::shared_ptr<Checkpoint>& part);

  Tape& tape_;
  std::deque<Node> nodes_;
  std::shared_ptr<Checkpoint> part_;  ///< that is being recorded
  Checkpoint* again_ = nullptr;       ///< whose second run goes on
  Tensors gradients_;
  std::function<void(std::size_t)> collected_{};
  std::uint8_t parameters_stream_ = 0;
  std::vector<std::int32_t> collectors_;  ///< by parameter: its node in this graph, or -1
};

}  // namespace shard::like::eager
