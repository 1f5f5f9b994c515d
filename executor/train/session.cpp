// One rank's training run.
#include "executor/train/session.h"

#include <algorithm>
#include <chrono>

#include "executor/train/numbers.h"

namespace shard::train {

Result<void> Session::phase(Phase which, std::int64_t step, std::optional<std::int64_t> data) {
  const plan::PhaseOps* ops = plan_.find(which);
  if (ops == nullptr) return {};
  if (options_.before_phase) options_.before_phase(which, step);
  backend_.set_step(data.value_or(step));
  if (options_.recorder != nullptr) options_.recorder->begin(which, step, executor::now_ns());
  if (Result<void> r = backend_.run(*ops); !r) return r;
  if (options_.recorder != nullptr) options_.recorder->end(executor::now_ns());
  if (options_.after_phase) options_.after_phase();
  for (int m = 0; m < kMemoryCount; ++m) note_peaks(which, static_cast<Memory>(m));
  return {};
}

Result<void> Session::create() {
  if (Result<void> r = phase(Phase::creation, 0); !r) return r;
  result_.moments.push_back({"creation", backend_.books().phase_ledger(Memory::device).live_by_category()});
  return {};
}

Result<StepResult> Session::step() {
  const auto begin = std::chrono::steady_clock::now();
  const double rate = options_.learning_rate ? options_.learning_rate(steps_) : options_.scalars.learning_rate;
  backend_.set_learning_rate(rate);
  if (Result<void> r = phase(steps_ == options_.first_step ? Phase::first_step : Phase::steady_step, steps_); !r)
    return r.error();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const StepResult done{.step = steps_,
                        .loss = backend_.loss(),
                        .seconds = took.count(),
                        .learning_rate = rate,
                        .control = backend_.control()};
  steps_ += 1;
  result_.losses.push_back(done.loss);
  result_.step_seconds.push_back(done.seconds);
  result_.step_communication.push_back(backend_.communication_time());
  result_.learning_rates.push_back(done.learning_rate);
  if (done.control) result_.controls.push_back(*done.control);
  if (options_.after_step) options_.after_step(done);
  if (Result<void> r = check_step(done, backend_.health(), plan_, communicator_); !r && !options_.keep_going)
    return r.error();
  if (options_.read_each_step && options_.digest && steps_ < options_.steps)
    if (Result<void> r = show_state(); !r) return r.error();
  return done;
}

Result<void> Session::evaluate() {
  const EvaluationPlan& e = options_.evaluation;
  if (e.every == 0 || (steps_ % e.every != 0 && steps_ != options_.steps)) return {};
  note_parts_of_step();
  const auto begin = std::chrono::steady_clock::now();
  const CollectiveTotals before = communicator_.totals();
  EvaluationResult done{.step = steps_};
  if (e.use_validation) e.use_validation(true);
  for (std::int64_t k = 0; k < e.steps; ++k) {
    if (Result<void> r = phase(Phase::evaluate, steps_ - 1, k); !r) return r;
    done.loss += static_cast<double>(backend_.loss()) / static_cast<double>(e.steps);
  }
  if (e.use_validation) e.use_validation(false);
  result_.evaluation_collectives += communicator_.totals() - before;
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result_.evaluations.push_back(done);
  if (e.after) e.after(done);
  return {};
}

Result<void> Session::keep() {
  StateKeeper* const keeper = options_.keeper;
  if (keeper == nullptr) return {};
  const Result<bool> wanted = keeper->wants(steps_, options_.steps);
  if (!wanted) return wanted.error();
  if (!*wanted) return {};
  note_parts_of_step();
  if (Result<void> r = keeper->begin(steps_); !r) return r;
  if (Result<void> r = phase(Phase::save, steps_); !r) return r;
  return keeper->end();
}

/// Of the step that has just ended, before anything else is run.
void Session::note_parts_of_step() {
  if (noted_ == steps_) return;
  noted_ = steps_;
  result_.moments.resize(1);
  result_.moments.push_back({"forward", backend_.books().live_after(plan::Part::forward)});
  result_.moments.push_back({"backward", backend_.books().live_after(plan::Part::backward)});
  result_.moments.push_back({"step", backend_.books().phase_ledger(Memory::device).live_by_category()});
}

/// Of memories that the plan uses.
void Session::note_peaks(Phase which, Memory memory) {
  if (plan_.arena_bytes[static_cast<std::size_t>(memory)].count() == 0) return;
  const ArenaLedger& ledger = backend_.books().phase_ledger(memory);
  auto known =
      std::ranges::find_if(result_.phases, [&](const PhasePeak& p) { return p.phase == which && p.memory == memory; });
  if (known == result_.phases.end())
    known = result_.phases.insert(known, {.phase = which, .memory = memory, .peak = {}, .live_peak = {}});
  known->peak = std::max(known->peak, ledger.extent());
  known->live_peak = std::max(known->live_peak, ledger.live_peak());
}

Result<void> Session::show_state() {
  note_parts_of_step();
  const CollectiveTotals before = communicator_.totals();
  if (Result<void> r = phase(Phase::digest, steps_); !r) return r.error();
  result_.digest_collectives += communicator_.totals() - before;
  return {};
}

/// Ranks that share the model hash a part of it each; rank 0 hashes their numbers, in rank order.
Result<std::string> Session::digest() {
  if (Result<void> r = show_state(); !r) return r.error();
  if (Result<void> r = check_state(backend_.health(), plan_, communicator_); !r && !options_.keep_going)
    return r.error();
  const std::string own = backend_.digest().finish(steps_);
  const std::int32_t parts = plan_.topology.tensor_parallel;
  const bool first = communicator_.rank().value == 0;
  if (parts == 1) {
    result_.state_sha256 = first ? own : "";
    return result_.state_sha256;
  }
  const Result<std::vector<std::string>> all = communicator_.exchange(own);
  if (!all) return all.error();
  if (first) result_.state_sha256 = digest_of_parts(std::span(*all).first(static_cast<std::size_t>(parts)));
  return result_.state_sha256;
}

SessionResult Session::finish() {
  note_parts_of_step();
  for (int m = 0; m < kMemoryCount; ++m) {
    const auto memory = static_cast<Memory>(m);
    result_.peak[static_cast<std::size_t>(m)] = backend_.books().peak(memory);
    result_.live_peak[static_cast<std::size_t>(m)] = backend_.books().live_peak(memory);
  }
  result_.optimizer_state =
      executor::optimizer_state_bytes(plan_, plan::position(plan_.topology, communicator_.rank().value));
  result_.collectives = communicator_.totals() - result_.digest_collectives - result_.evaluation_collectives;
  return std::move(result_);
}

executor::BackendOptions backend_options(const SessionOptions& options) {
  return {
      .scalars = options.scalars,
      .knobs = options.knobs,
      .inject = options.inject,
      .seed = options.seed,
      .observer = options.observer,
      .read_state = options.read_state,
      .read_on_every_rank = options.read_each_step,
      .first_values = options.first_values,
      .first_state = options.first_state,
      .save_state = options.keeper == nullptr
                        ? executor::StateSaver()
                        : [keeper = options.keeper](
                              model::ParamId param, plan::StateContent content, std::int64_t first,
                              std::span<const std::byte> elements) { keeper->take(param, content, first, elements); },
      .recorder = options.recorder};
}

Result<SessionResult> run_session(executor::RankBackend& backend, const plan::Plan& plan, Communicator& communicator,
                                  const SessionOptions& options) {
  Session session(backend, plan, communicator, options);
  if (Result<void> r = session.create(); !r) return r.error();
  while (session.steps() < options.steps) {
    if (const Result<StepResult> r = session.step(); !r) return r.error();
    if (Result<void> r = session.evaluate(); !r) return r.error();
    if (Result<void> r = session.keep(); !r) return r.error();
    if (options.keeper != nullptr && options.keeper->ends_run()) break;
  }
  if (options.digest && session.steps() >= options.steps)
    if (const Result<std::string> r = session.digest(); !r) return r.error();
  if (options.keeper != nullptr)
    if (Result<void> r = options.keeper->settle(); !r) return r.error();
  if (options.before_end)
    if (Result<void> r = options.before_end(); !r) return r.error();
  return session.finish();
}

Result<SessionResult> run_session(const plan::Plan& plan, Communicator& communicator, DataSource& data,
                                  cpu::ThreadPool& pool, const SessionOptions& options) {
  const Result<std::span<std::byte>> arena =
      communicator.make_arena(plan.arena_bytes[static_cast<std::size_t>(Memory::device)]);
  if (!arena) return arena.error();
  const Result<cpu::Memories> memories = cpu::Memories::make(plan, *arena, options.disk_path);
  if (!memories) return memories.error();
  cpu::Backend backend(plan, communicator, *memories, data, pool, backend_options(options));
  return run_session(backend, plan, communicator, options);
}

}  // namespace shard::train
