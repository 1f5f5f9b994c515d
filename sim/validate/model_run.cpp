// A micro-batch of a whole model.
#include "sim/validate/model_run.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shard::validate {
namespace {

/// The pieces that a chunked loss cuts its tokens into: torchtune's and torchtitan's default.
constexpr std::int64_t kChunks = 8;

Keep keep_of(const RunDescription& run, std::int64_t layer) {
  switch (run.recompute) {
    case Recompute::none:
    case Recompute::attention: return Keep::all;
    case Recompute::block: return Keep::input;
    case Recompute::every_other_block: return layer % 2 == 1 ? Keep::input : Keep::all;
    case Recompute::every_other_product: return Keep::marked;
  }
  return Keep::all;
}

/// Head and loss in one go, or by pieces; gives the gradient of the residual stream.
class HeadRun {
 public:
  HeadRun(MemoryStream& memory, const RunDescription& run) : memory_(memory), run_(run), list_(head_operators(run)) {}

  Held run(Held hidden, std::vector<Held>& weights) {
    const std::int64_t tokens = run_.micro_batch * run_.model.sequence;
    if (run_.loss != Loss::chunked) {
      Kept kept;
      const Held logits = run_forward(memory_, list_, hidden, Keep::all, kept);
      memory_.drop(hidden);
      const Held gradient = run_loss(memory_, run_, logits, tokens);
      return run_backward(memory_, list_, kept, gradient, weights);
    }
    // The norm is whole; every piece makes its logits, its loss and its gradients, which are added up.
    const std::int64_t piece = (tokens + kChunks - 1) / kChunks, v = run_.model.vocab / run_.tensor;
    const std::int64_t size = memory_.bytes(hidden), e = element_bytes(run_);
    const Held normed = memory_.take(size);
    const Held sum = memory_.take(size);
    Held weight = 0;
    for (std::int64_t i = 0; i < kChunks; ++i) {
      RunDescription part = run_;
      part.loss = run_.compiled ? Loss::one_pass : Loss::eager;
      const Held gradient = run_loss(memory_, part, memory_.take(piece * v * e), piece);
      memory_.pass(size / kChunks);
      const Held more = run_.trains_all ? memory_.take(v * run_.model.hidden * e) : 0;
      if (weight == 0)
        weight = more;
      else
        memory_.drop(more);
      memory_.drop(gradient);
    }
    weights.push_back(weight);
    memory_.drop(normed);
    const Held out = memory_.take(size);
    memory_.drop(sum);
    memory_.drop(hidden);
    return out;
  }

 private:
  MemoryStream& memory_;
  const RunDescription& run_;
  std::vector<Operator> list_;
};

}  // namespace

void run_micro_batch(MemoryStream& memory, const RunDescription& run, Hooks& hooks) {
  const std::int64_t layers = run.model.layers, residual = residual_bytes(run);
  const std::int64_t tokens = run.micro_batch * run.model.sequence;
  const std::vector<Operator> block = block_operators(run);
  const Held ids = memory.take(8 * tokens), labels = memory.take(8 * tokens);
  hooks.before_forward(layers);
  Held x = memory.take(residual);
  std::vector<Kept> kept(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    hooks.before_forward(i);
    Kept& mine = kept[static_cast<std::size_t>(i)];
    const Held y = run_forward(memory, block, x, keep_of(run, i), mine);
    memory.drop(x);
    if (run.offload_activations && mine.again) memory.drop(std::exchange(mine.input, 0));
    x = y;
    hooks.after_forward(i);
  }
  std::vector<Held> outside;
  Held gradient = HeadRun(memory, run).run(x, outside);
  for (std::int64_t i = layers; i-- > 0;) {
    hooks.before_backward(i);
    Kept& mine = kept[static_cast<std::size_t>(i)];
    if (run.offload_activations && mine.again) mine.input = memory.take(residual);
    std::vector<Held> gradients;
    gradient = run_backward(memory, block, mine, gradient, gradients);
    hooks.after_backward(i, gradients);
  }
  if (run.trains_all) {
    const std::int64_t elements = run.model.embedding_parameters() / run.tensor;
    const std::int64_t e = run.framework == Framework::megatron ? 2 : run.autocast ? 4 : element_bytes(run);
    outside.push_back(memory.take(elements * e));
    // A tied weight has one gradient: the second is added to the first.
    if (run.model.tied && outside.size() > 1) {
      memory.drop(outside.back());
      outside.pop_back();
    }
  }
  memory.drop(gradient);
  hooks.after_backward(layers, outside);
  memory.drop(ids);
  memory.drop(labels);
}

}  // namespace shard::validate
