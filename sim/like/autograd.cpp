// Pass autograd: eager PyTorch's tensors in place of our kernels' buffers.
#include <algorithm>
#include <map>

#include "sim/compile/passes/operands.h"
#include "sim/like/passes.h"

namespace shard::like {
namespace {

using model::OperatorKind;
using model::Role;
using plan::Access;
using plan::Compute;
using plan::Direction;
using plan::Operand;

constexpr std::int64_t kIndexBytes = 8;  // torch.long

class Autograd {
 public:
  explicit Autograd(plan::Draft plan) : plan_(std::move(plan)) {}

  plan::Draft run() {
    widen_indices();
    std::vector<plan::Op>& ops = plan_.find(Phase::steady_step)->ops;
    for (plan::Op& op : ops) {
      for (Operand& o : plan_.own_operands(op))
        if (const auto it = current_.find(o.buffer.value); it != current_.end()) o.buffer = it->second;
      const Compute compute = std::get<Compute>(op.action);
      drop_workspace(op, compute);
      if (compute.direction == Direction::forward)
        forward(op, compute);
      else
        backward(op, compute);
    }
    for (plan::Op& op : ops)
      for (Operand& o : plan_.own_operands(op)) o.bytes = plan_.buffer(o.buffer).bytes.count();
    return std::move(plan_);
  }

 private:
  /// Of the parts' name.
  BufferId temporary(Bytes bytes, const auto&... parts) {
    return plan_.add_buffer({.name = plan_.text(parts...), .category = Category::workspace, .bytes = bytes});
  }
  void write(plan::Op& op, BufferId buffer) { plan_.add_operand(op, plan::writes(plan_, buffer)); }

  void widen_indices() {
    for (std::size_t v = 0; v < plan_.graph->values.size(); ++v) {
      const model::Value& value = plan_.graph->values[v];
      if (value.dtype == Dtype::i32)
        plan_.buffer(plan_.value_buffer({static_cast<std::int32_t>(v)})).bytes = Bytes{value.elements() * kIndexBytes};
    }
  }

  void drop_workspace(plan::Op& op, const Compute& compute) {
    if (!compute.workspace) return;
    std::vector<Operand> rest(op.operands.begin(), op.operands.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(plan::signature(compute).position(Role::workspace)));
    op.operands = plan_.list(rest);
    std::get<Compute>(op.action).workspace = false;
  }

  [[nodiscard]] const model::Operator& source(const Compute& compute) const {
    return plan_.graph->operators[static_cast<std::size_t>(compute.source)];
  }

  /// What a fused kernel keeps of a softmax becomes the tensor that PyTorch saves.
  void resize_statistic(const Operand& operand, const char* name, Bytes bytes) {
    plan::Buffer& buffer = plan_.buffer(operand.buffer);
    if (buffer.bytes == bytes) return;
    buffer.bytes = bytes;
    constexpr std::string_view kFused = ".lse";
    const std::size_t at = buffer.name.rfind(kFused);
    const bool fused = at != std::string_view::npos;
    buffer.name = plan_.text(buffer.name.substr(0, at), fused ? buffer.name.substr(at + kFused.size()) : "", name);
  }

  /// Of an op that has nothing but the operands of its signature before it.
  [[nodiscard]] static const Operand& operand(const plan::Op& op, const Compute& compute, Role role) {
    return op.operands[plan::signature(compute).position(role)];
  }

  [[nodiscard]] static Bytes scores_bytes(const model::Attributes& a) {
    return Bytes{a.batch * a.heads * a.sequence * a.sequence * bytes_per_element(Dtype::f32)};
  }

  void forward(plan::Op& op, const Compute& compute) {
    if (compute.kind == OperatorKind::attention) {
      const Bytes bytes = scores_bytes(*compute.attributes);
      resize_statistic(operand(op, compute, Role::statistic), " probabilities", bytes);
      write(op, temporary(bytes, op.name, " scores"));
    } else if (compute.kind == OperatorKind::cross_entropy) {
      resize_statistic(operand(op, compute, Role::statistic), " log probabilities",
                       plan_.buffer(operand(op, compute, Role::x).buffer).bytes);
    } else if (compute.kind == OperatorKind::mse) {
      write(op, temporary(plan_.buffer(operand(op, compute, Role::x).buffer).bytes, op.name, " squared differences"));
    }
    const BufferId loss = plan_.value_buffer(plan_.graph->loss);
    std::vector<Operand> rest(op.operands.begin(), op.operands.end());
    if (std::erase_if(rest, [&](const Operand& o) { return o.buffer == loss; }) > 0) op.operands = plan_.list(rest);
  }

  [[nodiscard]] bool is_parameter_gradient(BufferId id) const {
    return std::find(plan_.gradients.begin(), plan_.gradients.end(), id) != plan_.gradients.end();
  }

  void backward(plan::Op& op, const Compute& compute) {
    if (compute.kind == OperatorKind::attention) {
      const Bytes bytes = scores_bytes(*compute.attributes);
      write(op, temporary(bytes, "d ", source(compute).name, " probabilities"));
      write(op, temporary(bytes, "d ", source(compute).name, " scores"));
    } else if (compute.kind == OperatorKind::cross_entropy) {
      write(op, temporary(plan_.buffer(operand(op, compute, Role::x).buffer).bytes, "d ", source(compute).name,
                          " log probabilities"));
    }
    const std::size_t count = op.operands.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Operand operand = op.operands[i];
      if (operand.access != Access::update) continue;
      const Bytes bytes = plan_.buffer(operand.buffer).bytes;
      const std::string_view name = plan_.buffer(operand.buffer).name;
      if (is_parameter_gradient(operand.buffer) || compute.accumulate_input) {
        write(op, temporary(bytes, name, " contribution"));
      } else {  // in place with us, a new tensor with PyTorch
        const BufferId result = temporary(bytes, "d ", source(compute).name, " input");
        plan_.own_operands(op)[i].access = Access::read;
        write(op, result);
        for (auto& [old, renamed] : current_)
          if (renamed == operand.buffer) renamed = result;
        current_[operand.buffer.value] = result;
      }
    }
  }

  plan::Draft plan_;
  std::map<std::int32_t, BufferId> current_;  ///< the tensor that stands for a buffer since an op changed it in place
};

}  // namespace

plan::Draft autograd(plan::Draft plan) {
  return Autograd(std::move(plan)).run();
}

}  // namespace shard::like
