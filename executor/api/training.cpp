// The loop's side of a run: asks all ranks, and gathers what they answer.
#include <shardscope/training.h>

#include <cassert>
#include <utility>

#include "executor/api/gate.h"
#include "executor/api/rank_run.h"
#include "executor/api/team.h"
#include "executor/comm/in_process.h"
#include "executor/commands/prepared.h"
#include "executor/train/resident.h"
#include "sim/cli/uncaught.h"
#include "traces/base/deadline.h"

namespace shardscope {
namespace {

Error not_these_tokens(std::string what, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(what), .where = "tokens", .help = std::move(help)};
}

/// Whether these are the rows of a step of `plan`.
Result<void> check_tokens(const Plan& plan, std::int64_t vocabulary, std::span<const std::int32_t> tokens) {
  if (vocabulary == 0) return not_these_tokens("the model takes samples, not tokens", "step(), and --data random");
  const std::int64_t row = plan.sequence() + 1;
  const std::int64_t wanted = plan.global_batch() * row;
  if (std::cmp_not_equal(tokens.size(), wanted))
    return not_these_tokens(std::to_string(tokens.size()) + " tokens, and a step takes " + std::to_string(wanted) +
                                ": global batch " + std::to_string(plan.global_batch()) + " x (sequence " +
                                std::to_string(plan.sequence()) + " + 1)",
                            "rows of one token more than the sequence, whose targets are its tokens one further");
  for (std::int64_t i = 0; i < wanted; ++i) {
    const std::int32_t token = tokens[static_cast<std::size_t>(i)];
    if (token >= 0 && token < vocabulary) continue;
    return not_these_tokens("token " + std::to_string(token) + " at row " + std::to_string(i / row) + ", place " +
                                std::to_string(i % row) + " is not below the vocabulary of " +
                                std::to_string(vocabulary),
                            "tokens from 0 to " + std::to_string(vocabulary - 1));
  }
  return {};
}

std::optional<GradientControl> control_of(const shard::train::StepResult& step) {
  if (!step.control) return std::nullopt;
  return GradientControl{.norm = static_cast<double>(step.control->norm),
                         .loss_scale = static_cast<double>(step.control->scale_before),
                         .skipped = step.control->skip != 0};
}

}  // namespace

class Training::Impl {
 public:
  /// `resumed`: null for a new run.
  explicit Impl(const Plan& plan, std::shared_ptr<const Plan::Impl> inside,
                std::shared_ptr<const shard::train::ResumedRun> resumed, std::vector<std::string> notes)
      : plan_(plan),
        inside_(std::move(inside)),
        resumed_(std::move(resumed)),
        notes_(std::move(notes)),
        team_(plan.ranks(),
              [this](int rank, const Error& error) { ranks_[static_cast<std::size_t>(rank)]->abort(error); }) {
    const shard::CommOptions options{.deadline = shard::deadline_of(inside_->options.timeout_seconds)};
    std::vector<std::unique_ptr<shard::Communicator>> communicators;
    if (plan.ranks() == 1) {
      communicators.push_back(shard::make_single(options));
    } else {
      communicators = shard::make_in_process(plan.ranks(), options);
    }
    for (auto& communicator : communicators)
      ranks_.push_back(std::make_unique<RankRun>(*inside_, std::move(communicator), own_, resumed_.get()));
  }

  [[nodiscard]] Result<void> create() {
    if (Result<void> r = all([](RankRun& rank) { return rank.create(); }); !r) return r;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      created_.push_back(
          {.measured = created_of(ranks_[rank]->moments().end), .predicted = *plan_.created(static_cast<int>(rank))});
    return {};
  }

  [[nodiscard]] Result<Step> step(std::span<const std::int32_t> tokens) {
    own_.rows = tokens;
    std::optional<shard::train::StepResult> first;
    const Result<void> done = all([&](RankRun& rank) -> Result<void> {
      const Result<shard::train::StepResult> result = rank.step();
      if (!result) return result.error();
      if (&rank == ranks_.front().get()) first = *result;
      return {};
    });
    own_.rows = {};
    if (!done) return done.error();
    const bool is_first = steps_ == first_step_;
    steps_ = first->step + 1;
    Step step{.number = first->step + 1,
              .loss = first->loss,
              .seconds = Seconds{first->seconds},
              .learning_rate = first->learning_rate,
              .control = control_of(*first)};
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const int rank = static_cast<int>(r);
      step.memory.push_back({.measured = in_step_of(ranks_[r]->moments()),
                             .predicted = is_first ? *plan_.first_step(rank) : *plan_.steady_step(rank)});
    }
    return step;
  }

  [[nodiscard]] Result<std::string> digest() {
    if (Result<void> born = state_is_born("state_sha256()"); !born) return born.error();
    std::string sha256;
    const Result<void> done = all([&](RankRun& rank) -> Result<void> {
      const Result<std::string> own = rank.digest();
      if (!own) return own.error();
      if (&rank == ranks_.front().get()) sha256 = *own;
      return {};
    });
    if (!done) return done.error();
    return sha256;
  }

  [[nodiscard]] Result<Saved> save(const std::string& folder, std::int64_t keep) {
    if (Result<void> born = state_is_born("save()"); !born) return born.error();
    if (keep < 0)
      return Error{.code = Errc::contradiction,
                   .what = "keeps the newest " + std::to_string(keep) + " checkpoints",
                   .where = "save()",
                   .help = "0, which keeps all, or more"};
    std::vector<SaveOnDemand::Outcome> outcomes(ranks_.size());
    const Result<void> done = team_.all([&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      return ranks_[r]->save(folder, keep, outcomes[r]);
    });
    if (!done) return done.error();
    const SaveOnDemand::Outcome& first = outcomes.front();
    if (first.fault) return *first.fault;
    return Saved{.path = first.saved->path.string(),
                 .steps = first.saved->step,
                 .bytes = first.saved->bytes,
                 .seconds = Seconds{first.saved->seconds}};
  }

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t vocabulary() const { return inside_->prepared.planned.model->vocabulary; }
  [[nodiscard]] const std::vector<CreatedMemory>& created() const { return created_; }
  [[nodiscard]] Live peak(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->peak(); }
  [[nodiscard]] const std::shared_ptr<Gate>& gate() const { return gate_; }

 private:
  /// The optimizer's state is, from the first step on that this object makes.
  [[nodiscard]] Result<void> state_is_born(const char* call) const {
    if (steps_ > first_step_) return {};
    return Error{.code = Errc::contradiction,
                 .what = "no step is done, and the optimizer's state is made in the first",
                 .where = call,
                 .help = "step() before it"};
  }

  template <class Work>
  [[nodiscard]] Result<void> all(const Work& work) {
    return team_.all([&](int rank) { return work(*ranks_[static_cast<std::size_t>(rank)]); });
  }

  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  Plan plan_;
  std::shared_ptr<const Plan::Impl> inside_;
  std::shared_ptr<const shard::train::ResumedRun> resumed_;
  std::vector<std::string> notes_;
  std::int64_t first_step_ = resumed_ == nullptr ? 0 : resumed_->manifest().step;
  std::int64_t steps_ = first_step_;  ///< that are done
  OwnTokens own_;
  std::vector<CreatedMemory> created_;
  std::vector<std::unique_ptr<RankRun>> ranks_;
  Team team_;  ///< ends before what its threads work on
};

/// In a forked process all of it stays where it is: threads, shared pages and files are the other process's.
void Training::End::operator()(Impl* impl) const noexcept {
  if (impl->gate()->close()) delete impl;
}

Training::Training(std::unique_ptr<Impl, End> impl) : impl_(std::move(impl)) {}
Training::Training(Training&&) noexcept = default;
Training& Training::operator=(Training&&) noexcept = default;
Training::~Training() = default;

namespace {

/// Can the plan's ranks be started here?
Result<void> check_start(const Plan& plan) {
  if (Result<void> fits = plan.fits(); !fits) return fits.error();
  if (plan.ranks() > shard::commands::kMostRanks)
    return Error{.code = Errc::contradiction,
                 .what = "--world-size " + std::to_string(plan.ranks()) + " asks for as many threads; at most " +
                         std::to_string(shard::commands::kMostRanks) + " are started",
                 .where = "options",
                 .help = "mpirun or srun with shardscope train, over more machines"};
  return {};
}

}  // namespace

Result<Training> Training::start(const Plan& plan) {
  return begin(plan, nullptr, Resume::exact);
}

Result<Training> Training::load(const Plan& plan, const std::string& folder, Resume resume) {
  return begin(plan, &folder, resume);
}

Result<Training> Training::begin(const Plan& plan, const std::string* folder, Resume resume) {
  if (Result<void> possible = check_start(plan); !possible) return possible.error();
  return shard::cli::guarded([&]() -> Result<Training> {
    std::shared_ptr<const shard::train::ResumedRun> resumed;
    std::vector<std::string> notes;
    if (folder != nullptr) {
      auto run = shard::commands::resumed_run({.folder = *folder,
                                               .inexact = resume == Resume::inexact,
                                               .by = "load(\"" + *folder + "\")",
                                               .inexact_by = "Resume::inexact"},
                                              plan.impl_->options, plan.impl_->prepared, notes);
      if (!run) return run.error();
      resumed = std::move(*run);
    }
    std::unique_ptr<Impl, End> impl(new Impl(plan, plan.impl_, std::move(resumed), std::move(notes)));
    if (Result<void> created = impl->create(); !created) return created.error();
    return Training(std::move(impl));
  });
}

namespace {

/// work() by whoever may enter; `gate` is null of an object that was moved from.
template <class Work>
auto one_call(const std::shared_ptr<Gate>& gate, const Work& work) -> decltype(work()) {
  return shard::cli::guarded([&]() -> decltype(work()) {
    const Result<Gate::Inside> inside = Gate::enter(gate, "Training");
    if (!inside) return inside.error();
    return work();
  });
}

}  // namespace

std::shared_ptr<Gate> Training::gate() const {
  return impl_ == nullptr ? nullptr : impl_->gate();
}

Result<Step> Training::step() {
  return one_call(gate(), [&] { return impl_->step({}); });
}

Result<Step> Training::step(std::span<const std::int32_t> tokens) {
  return one_call(gate(), [&]() -> Result<Step> {
    if (Result<void> ok = check_tokens(impl_->plan(), impl_->vocabulary(), tokens); !ok) return ok.error();
    return impl_->step(tokens);
  });
}

Result<Saved> Training::save(const std::string& folder, std::int64_t keep) {
  return one_call(gate(), [&] { return impl_->save(folder, keep); });
}

std::int64_t Training::steps() const {
  return impl_ == nullptr ? 0 : impl_->steps();
}

const std::vector<std::string>& Training::notes() const {
  static const std::vector<std::string> none;
  return impl_ == nullptr ? none : impl_->notes();
}

const std::vector<CreatedMemory>& Training::created() const {
  static const std::vector<CreatedMemory> none;
  return impl_ == nullptr ? none : impl_->created();
}

Result<Live> Training::peak(int rank) const {
  return one_call(gate(), [&]() -> Result<Live> {
    if (Result<void> there = check_rank(rank, impl_->plan().ranks()); !there) return there.error();
    return impl_->peak(rank);
  });
}

Result<std::string> Training::state_sha256() {
  return one_call(gate(), [&] { return impl_->digest(); });
}

Bytes resident() {
  return shard::train::proportional_set_size();
}

}  // namespace shardscope
