// The CS336 course's transformer: cs336_basics/model.py, nn_utils.py and cs336_systems/benchmark_nvtx.py of
// LINYUNLinYun/CS336-assignment2-systems at d7b9b89129.
#include "sim/like/eager/lowering.h"

namespace shard::like::eager {
namespace {

/// x * torch.sigmoid(x).
Tensor silu_by_sigmoid(Runtime& r, const Tensor& x) {
  return mul(r, x, activation(r, x, "sigmoid", Kept::result));
}

constexpr ClassRow kCourse{.class_name = {},
                           .rotation = Rotation::pairs_taken_apart,
                           .norm = Norm::weight_in_fp32,
                           .scores = Scores::by_einsum,
                           .names = Names::passed,
                           .inputs = Inputs::none,
                           .modules = {"token_embeddings", "layers.", "ln_final", "lm_head"},
                           .function = silu_by_sigmoid,
                           .caches = false,
                           .products_by_einsum = true,
                           .embedding_by_index = true,
                           .down_before_up = true};

class Course final : public LoweredDecoder {
 public:
  Course(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : LoweredDecoder(runtime, model, options, kCourse) {
    // module.to(device): a module's parameters, then its buffers, modules in order; the second module has the table.
    add_buffer(1, "rotary table", {2, model.max_sequence, model.head_dim / 2}, Scalar::f32);
  }

  void create() override {
    LoweredDecoder::create();
    targets_ = named("targets", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
  }

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    r_.begin_autocast(options_.autocast);
    logits_ = scores(decoder());
    r_.end_autocast();
    r_.tape().set_module("loss", -1);
    const Tensor wide = to(r_, logits_, Scalar::f32);
    const Tensor rows = reshape(r_, wide, {tokens_.elements(), model_.vocabulary});
    return cross_entropy(r_, rows, targets_);
  }

  void end_step() override { logits_ = {}; }

 private:
  Tensor targets_, logits_;
};

}  // namespace

std::unique_ptr<Program> course_program(Runtime& runtime, const model::Model& model, const ProgramOptions& options) {
  return std::make_unique<Course>(runtime, model, options);
}

}  // namespace shard::like::eager
