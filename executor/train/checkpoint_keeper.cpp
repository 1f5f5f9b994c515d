// One save: a draft by rank 0, parts by all ranks, their pieces back to rank 0, which gives the draft its name.
#include "executor/train/checkpoint_keeper.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "executor/state/checkpoint/directory.h"
#include "sim/ir/scaler.h"

namespace shard::train {

CheckpointKeeper::CheckpointKeeper(CheckpointPlan what, const plan::Plan& plan, Communicator& communicator,
                                   std::function<void(const SavedCheckpoint&)> after)
    : what_(std::move(what)),
      plan_(plan),
      communicator_(communicator),
      after_(std::move(after)),
      layout_(checkpoint::lay_out(what_.tensors.weights, what_.tensors.state)) {}

Result<bool> CheckpointKeeper::wants(std::int64_t steps, std::int64_t last) {
  if (Result<void> r = go_on(); !r) return r.error();
  if (what_.asked && steps < last) {
    const Result<std::vector<std::string>> all =
        communicator_.exchange(std::string(1, static_cast<char>(what_.asked())));
    if (!all) return all.error();
    for (const std::string& each : *all)
      if (ended_by_ == 0) ended_by_ = each.front();
    if (ended_by_ != 0) return true;
  }
  return (what_.every > 0 && steps % what_.every == 0) || (what_.at_end && steps == last);
}

Result<void> CheckpointKeeper::begin(std::int64_t steps) {
  if (Result<void> r = settle(); !r) return r;
  begin_ = std::chrono::steady_clock::now();
  steps_ = steps;
  heads_.assign(plan_.model->parameters.size(), false);
  counts_.assign(plan_.model->parameters.size(), 0);
  fault_.reset();
  const Result<std::vector<std::string>> made = together(communicator_, [&]() -> Result<std::string> {
    if (communicator_.rank().value != 0) return std::string();
    std::vector<checkpoint::SmallFile> small;
    if (!what_.config.empty()) small.push_back({.name = "config.json", .text = what_.config});
    Result<checkpoint::Draft> draft = checkpoint::Draft::create(what_.folder, steps, layout_, std::move(small));
    if (!draft) return draft.error();
    draft_.emplace(std::move(*draft));
    return draft_->path().string();
  });
  if (!made) return made.error();
  const Result<std::vector<std::string>> opened = together(communicator_, [&]() -> Result<std::string> {
    Result<checkpoint::Part> part = checkpoint::Part::open(made->front(), layout_);
    if (!part) return part.error();
    part_.emplace(std::move(*part));
    return std::string();
  });
  if (opened) return {};
  draft_.reset();
  return opened.error();
}

void CheckpointKeeper::write(std::int32_t tensor, std::int64_t offset, std::span<const std::byte> bytes) {
  if (fault_) return;
  if (Result<void> r = part_->write(tensor, offset, bytes); !r) fault_ = r.error();
}

void CheckpointKeeper::take(model::ParamId param, plan::StateContent content, std::int64_t first,
                            std::span<const std::byte> elements) {
  using plan::StateContent;
  const auto p = static_cast<std::size_t>(param.value);
  constexpr std::int64_t kFloat = sizeof(float);
  switch (content) {
    case StateContent::parameter:
    case StateContent::master: {
      const std::int64_t size = bytes_per_element(plan_.model->is_frozen(param) ? plan_.target.storage : Dtype::f32);
      if (first == 0) heads_[p] = true;
      return write(what_.tensors.value[p], first * size, elements);
    }
    case StateContent::first_moment: return write(what_.tensors.moment[0][p], first * kFloat, elements);
    case StateContent::second_moment: return write(what_.tensors.moment[1][p], first * kFloat, elements);
    case StateContent::step_counts: std::memcpy(&counts_[p], elements.data(), sizeof(std::int32_t)); return;
    case StateContent::loss_scaler: break;
  }
  // Its three numbers, one behind the other as in the file; all ranks have them.
  static_assert(sizeof(plan::ScalerState) == 3 * sizeof(std::int32_t));
  if (communicator_.rank().value != 0) return;
  for (std::size_t i = 0; i < 3; ++i)
    write(what_.tensors.scaler + static_cast<std::int32_t>(i), 0, elements.subspan(4 * i, 4));
}

Result<void> CheckpointKeeper::end() {
  const auto kind = what_.beside_training ? JointWork::Kind::beside : JointWork::Kind::awaited;
  committing_ = false;
  work_.emplace(communicator_, [this] { return finish_part(); }, kind);
  return what_.beside_training ? Result<void>() : settle();
}

Result<std::string> CheckpointKeeper::finish_part() {
  for (std::size_t p = 0; p < heads_.size(); ++p)
    if (heads_[p] && what_.tensors.count[p] >= 0)
      write(what_.tensors.count[p], 0, std::as_bytes(std::span(counts_).subspan(p, 1)));
  if (fault_) return *fault_;
  Result<std::vector<checkpoint::FilePieces>> own = part_->finish();
  if (!own) return own.error();
  return checkpoint::pack(*own);
}

Result<std::string> CheckpointKeeper::commit(const std::vector<std::string>& pieces) {
  if (communicator_.rank().value != 0) return std::string();
  checkpoint::Manifest manifest = what_.facts;
  manifest.step = steps_;
  manifest.micro_batches = steps_ * plan_.micro_batches;
  manifest.tokens = steps_ * what_.tokens;
  for (const std::string& each : pieces) {
    const Result<std::vector<checkpoint::FilePieces>> parts = checkpoint::unpack(each);
    if (!parts) return parts.error();
    checkpoint::add_pieces(manifest, *parts);
  }
  if (Result<void> r = draft_->commit(std::move(manifest)); !r) return r.error();
  // What a save that died left goes in any case.
  const std::int64_t keep = what_.keep > 0 ? what_.keep : std::numeric_limits<std::int64_t>::max();
  if (Result<void> r = checkpoint::prune(what_.folder, keep); !r) return r.error();
  return draft_->name().string();
}

Result<void> CheckpointKeeper::go_on() {
  if (!work_) return {};
  const Result<bool> done = work_->is_done();
  if (!done) return done.error();
  return *done ? go_on_behind(work_->wait()) : Result<void>();
}

Result<void> CheckpointKeeper::settle() {
  while (work_)
    if (Result<void> r = go_on_behind(work_->wait()); !r) return r;
  return {};
}

Result<void> CheckpointKeeper::go_on_behind(const Result<std::vector<std::string>>& done) {
  work_.reset();
  part_.reset();
  if (!done) {
    draft_.reset();
    return done.error();
  }
  if (!committing_) {
    committing_ = true;
    const auto kind = what_.beside_training ? JointWork::Kind::beside : JointWork::Kind::awaited;
    work_.emplace(communicator_, [this, pieces = *done] { return commit(pieces); }, kind);
    return {};
  }
  draft_.reset();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
  if (communicator_.rank().value == 0 && after_)
    after_({.path = done->front(), .step = steps_, .bytes = bytes(), .seconds = took.count()});
  return {};
}

}  // namespace shard::train
