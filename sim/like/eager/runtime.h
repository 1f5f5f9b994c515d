// The state of a running PyTorch: its version, its card, its parameters, the graph, cuBLAS's workspaces.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/like/eager/autograd.h"
#include "sim/like/eager/reduction.h"
#include "sim/like/eager/versions.h"

namespace shard::like::eager {

class Sharding;

/// The kernels that operators are made of: each allocates as ATen's CUDA code does, and records nothing.
class Runtime final : public Fitting {
 public:
  Runtime(Tape& tape, const Machine& machine, Version version, std::size_t parameters)
      : tape_(tape), machine_(machine), version_(version), graph_(tape, parameters) {}

  [[nodiscard]] Tape& tape() { return tape_; }
  [[nodiscard]] Graph& graph() { return graph_; }
  /// In the order in which the optimizer has them; the program adds them.
  [[nodiscard]] Tensors& parameters() { return parameters_; }
  /// The module's, which no optimizer has.
  [[nodiscard]] Tensors& buffers() { return buffers_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] Version version() const { return version_; }

  /// torch.autocast, none outside of it.
  std::optional<Scalar> autocast{};
  /// By parameter: its copy in 16 bits, until the outermost autocast ends.
  [[nodiscard]] Tensors& kept_casts() { return kept_casts_; }
  void begin_autocast(std::optional<Scalar> scalar) {
    autocast = scalar;
    kept_casts_.resize(parameters_.size());
  }
  void end_autocast() {
    autocast.reset();
    kept_casts_.clear();
  }
  /// What puts the model over several ranks; none: nothing does.
  Sharding* sharding = nullptr;
  /// Off under torch.no_grad() and in backward.
  bool gradients_wanted = true;

  [[nodiscard]] Tensor empty(const Dims& sizes, Scalar scalar);
  [[nodiscard]] Tensor empty(const Dims& sizes, const Dims& strides, Scalar scalar);
  /// Of this category, by an operator of this name.
  [[nodiscard]] Tensor named(std::string_view name, Category category, const Dims& sizes, Scalar scalar);
  /// A tensor whose memory comes later.
  [[nodiscard]] Tensor without_memory(const Dims& sizes, Scalar scalar);
  /// Of the operands' common size, laid out as they are (TensorIterator).
  [[nodiscard]] Tensor elementwise(std::span<const Tensor> operands, Scalar scalar);
  [[nodiscard]] Tensor elementwise(std::initializer_list<Tensor> operands, Scalar scalar) {
    return elementwise(std::span<const Tensor>(operands.begin(), operands.size()), scalar);
  }
  /// Over the dimensions whose bits are set, which stay with one element.
  [[nodiscard]] Tensor reduce(const Tensor& x, std::uint32_t dimensions, Scalar scalar);
  /// In the same order of dimensions, without holes.
  [[nodiscard]] Tensor clone(const Tensor& x) { return clone(x, x.scalar()); }
  [[nodiscard]] Tensor clone(const Tensor& x, Scalar scalar);
  [[nodiscard]] Tensor contiguous(const Tensor& x);
  /// A view where that is possible, else a copy.
  [[nodiscard]] Tensor reshape(const Tensor& x, const Dims& sizes);
  /// (n, k) x (k, m).
  [[nodiscard]] Tensor mm(const Tensor& a, const Tensor& b);
  /// (b, n, k) x (b, k, m).
  [[nodiscard]] Tensor bmm(const Tensor& a, const Tensor& b);
  /// With a bias added: cuBLASLt.
  [[nodiscard]] Tensor addmm(const Tensor& a, const Tensor& b);

  /// loss.backward().
  void backward(const Tensor& loss);
  /// torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False). `part` holds what its other arguments are.
  [[nodiscard]] Tensor checkpoint(const Tensor& x, std::function<Tensor(const Tensor&)> part);

  /// The same, keeping results of every second product and of attention (create_selective_checkpoint_contexts).
  [[nodiscard]] Tensor checkpoint_selectively(const Tensor& x, std::function<Tensor(const Tensor&)> part,
                                              bool keeps_attention);
  /// What an operator of such a part makes, or made the first time.
  [[nodiscard]] Tensors kept_attention(const std::function<Tensors()>& make);
  [[nodiscard]] Tensor kept_product(const std::function<Tensor()>& make);

  Tensor sum_to(const Tensor& gradient, const Dims& sizes) override;
  Tensor cast(const Tensor& gradient, Scalar scalar) override {
    tape_.begin_op("to");
    return clone(gradient, scalar);
  }
  Tensor add(const Tensor& a, const Tensor& b) override {
    tape_.begin_op("add");
    return elementwise({a, b}, a.scalar());
  }
  Tensor clone_as(const Tensor& gradient, const Tensor& parameter) override {
    tape_.begin_op("clone");
    return empty(parameter.sizes(), parameter.strides(), gradient.scalar());
  }

 private:
  void use_workspace();

  Tape& tape_;
  Machine machine_;
  Version version_;
  Tensors parameters_;
  Tensors buffers_;
  Tensors kept_casts_;
  Graph graph_;
  bool in_backward_ = false;
  /// Results that a part keeps, in order; the second run takes them out.
  struct KeptResults {
    std::deque<Tensors> results{};
    bool attention = true;
    std::int64_t products = 0;
  };
  KeptResults* keeping_ = nullptr;
  [[nodiscard]] Tensors kept_results(const std::function<Tensors()>& make);
  Tensor workspace_[2];  ///< cuBLAS, of the program's thread and of autograd's
  Tensor lt_workspace_[2];
};

/// x.transpose(a, b), without history.
[[nodiscard]] Tensor transposed(const Tensor& x, std::size_t a, std::size_t b);
/// x.expand(sizes), which may have more dimensions.
[[nodiscard]] Tensor expanded(const Tensor& x, const Dims& sizes);

}  // namespace shard::like::eager
