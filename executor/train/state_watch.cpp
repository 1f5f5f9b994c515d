// What a rank's state and losses were behind every step.
#include "executor/train/state_watch.h"

#include <cassert>

#include "executor/state/digest.h"

namespace shard::train {

StateKind state_kind(plan::Digest::Content content) {
  switch (content) {
    case plan::Digest::Content::parameter: return StateKind::value;
    case plan::Digest::Content::first_moment: return StateKind::first_moment;
    case plan::Digest::Content::second_moment: return StateKind::second_moment;
    case plan::Digest::Content::master: return StateKind::master;
    case plan::Digest::Content::step_counts:
    case plan::Digest::Content::loss_scaler: assert(false && "the digest shows neither");
  }
  return StateKind::value;
}

void StateWatch::attach(SessionOptions& options) {
  options.digest = true;
  options.read_each_step = true;
  options.before_phase = [this](Phase, std::int64_t step) { step_ = step; };
  options.after_step = [this](const StepResult& done) { losses_.push_back(done.loss); };
  options.read_state = [this](model::ParamId param, plan::Digest::Content content,
                              std::span<const std::byte> elements) {
    read({.param = param.value, .kind = state_kind(content)}, elements);
  };
}

void StateWatch::read(StateTensor tensor, std::span<const std::byte> elements) {
  const std::pair<std::int64_t, StateTensor> at{step_, tensor};
  std::string digest = sha256_of(elements);
  if (keep_ && keep_(step_, tensor)) kept_[at].assign(elements.begin(), elements.end());
  if (reference_ == nullptr) {
    digests_[at] = std::move(digest);
    return;
  }
  const auto expected = reference_->digests_.find(at);
  if (expected != reference_->digests_.end() && expected->second == digest) return;
  if (first_ && first_->step < step_) return;
  differing_.insert(tensor.param);
  if (first_ && first_->tensor < tensor) return;
  first_ = {.step = step_, .tensor = tensor, .bytes = {elements.begin(), elements.end()}};
}

const std::vector<std::byte>* StateWatch::kept(std::int64_t step, StateTensor tensor) const {
  const auto found = kept_.find({step, tensor});
  return found == kept_.end() ? nullptr : &found->second;
}

}  // namespace shard::train
