// DeepSpeed 0.19: runtime/zero/partitioned_param_coordinator.py and partition_parameters.py.
#include "sim/like/eager/deepspeed_coordinator.h"

#include <algorithm>
#include <utility>

#include "traces/base/division.h"

namespace shard::like::eager {
namespace {

/// Collectives, and what they write, are on a stream of their own.
constexpr std::uint8_t kGatherStream = 1;

}  // namespace

void ParameterCoordinator::begin() {
  states_.resize(r_.parameters().size());
}

std::int64_t ParameterCoordinator::part(std::size_t p) const {
  return divide_up(elements(p), options_.ranks);
}

bool ParameterCoordinator::is_persistent(std::size_t p) const {
  return elements(p) <= options_.zero3.persistence_threshold;
}

BufferId ParameterCoordinator::take(std::int64_t elements, std::string_view name, Category category) {
  r_.tape().begin_op(name);
  const BufferId memory = r_.tape().take(Bytes{elements * bytes_of(options_.compute)});
  r_.tape().set_category(memory, category);
  return memory;
}

Tensor ParameterCoordinator::copied_part(std::size_t p) {
  return {r_.tape(), take(part(p), "part from the host", Category::communication), {part(p)}, {1}, options_.compute};
}

void ParameterCoordinator::fill(std::size_t p, BufferId memory) {
  r_.parameters()[p].storage().refill(memory);
}

/// all_gather_coalesced(): one parameter is gathered into its own memory, several into a buffer that they are copied
/// out of. On one rank the part is the parameter.
void ParameterCoordinator::gather(std::vector<std::size_t> parameters) {
  std::erase_if(parameters, [this](std::size_t p) { return states_[p].status != Status::not_available; });
  if (parameters.empty()) return;
  std::sort(parameters.begin(), parameters.end());
  auto handle = std::make_shared<Handle>();
  r_.tape().on_stream(kGatherStream);
  const bool several_ranks = options_.ranks > 1;
  if (several_ranks && parameters.size() == 1) {
    const std::size_t p = parameters.front();
    fill(p, take(part(p) * options_.ranks, "all-gather", Category::gathered));
    if (options_.offload == Offload::all) handle->copies.push_back(copied_part(p));
  } else if (several_ranks) {
    std::int64_t together = 0;
    for (const std::size_t p : parameters) together += part(p);
    handle->flat = take(together * options_.ranks, "all-gather", Category::communication);
    Tensors copies;
    if (options_.offload == Offload::all)
      for (const std::size_t p : parameters) copies.push_back(copied_part(p));
  } else if (options_.offload == Offload::all) {
    for (const std::size_t p : parameters) fill(p, take(elements(p), "all-gather", Category::gathered));
  }
  r_.tape().on_stream(0);
  for (const std::size_t p : parameters) {
    gathered_ += elements(p);
    states_[p].status = Status::in_flight;
    states_[p].handle = handle;
  }
  handle->parameters = std::move(parameters);
}

void ParameterCoordinator::wait(Handle& handle) {
  if (handle.complete) return;
  handle.complete = true;
  handle.copies.clear();
  r_.tape().on_stream(kGatherStream);
  for (const std::size_t p : handle.parameters) {
    if (handle.flat.valid()) fill(p, take(elements(p), "copy out", Category::gathered));
    states_[p].status = Status::available;
  }
  r_.tape().on_stream(0);
}

/// The collective's buffer goes with the last parameter that is waited for.
void ParameterCoordinator::wait_for(std::size_t p) {
  const std::shared_ptr<Handle> handle = std::move(states_[p].handle);
  states_[p].handle = nullptr;
  if (handle == nullptr) return;
  wait(*handle);
  if (handle.use_count() == 1) r_.tape().give_back(handle->flat);
}

void ParameterCoordinator::release(std::size_t p) {
  State& s = states_[p];
  if (s.status != Status::available || !s.used_by.empty()) return;
  Tensor& parameter = r_.parameters()[p];
  if (std::exchange(s.run_again, false)) {
    Tensor fresh = r_.without_memory(parameter.sizes(), parameter.scalar());
    fresh.set_parameter(static_cast<std::int32_t>(p));
    parameter = std::move(fresh);
  } else {
    parameter.storage().drop();
  }
  s.status = Status::not_available;
  gathered_ -= elements(p);
}

void ParameterCoordinator::record_uses() {
  for (std::size_t i = 0; i < modules_.size(); ++i)
    for (const std::size_t p : modules_[i].parameters()) uses_.push_back({p, static_cast<std::int64_t>(i)});
}

void ParameterCoordinator::reset_step() {
  if (trace_ == Trace::invalid) {
    trace_ = Trace::recorded;
  } else if (trace_ == Trace::recorded) {
    record_uses();
    trace_ = Trace::complete;
  }
  queue_.assign(uses_.begin(), uses_.end());
  for (State& s : states_) s.fetched_for = -1;
  step_ = 0;
  gathered_ = 0;
}

void ParameterCoordinator::fetch(const Module& module, bool forward) {
  if (r_.tape().muted()) return;
  if (trace_ == Trace::recorded) modules_.push_back(module);
  if (!forward) {
    std::erase(in_backward_, module);
    in_backward_.push_back(module);
  }
  const std::vector<std::size_t> parameters = module.parameters();
  gather(parameters);
  for (const std::size_t p : parameters) {
    std::vector<std::string_view>& by = states_[p].used_by;
    if (std::find(by.begin(), by.end(), module.name) == by.end()) by.push_back(module.name);
    wait_for(p);
    if (r_.graph().in_second_run()) states_[p].run_again = true;
  }
  if (trace_ == Trace::complete) prefetch(module);
  ++step_;
}

/// Uses that come next in the trace, as many as fill a bucket.
void ParameterCoordinator::prefetch(const Module& module) {
  std::vector<std::size_t> open;
  for (const std::size_t p : module.parameters())
    if (states_[p].fetched_for < step_) open.push_back(p);
  for (std::size_t left = open.size(); left > 0 && !queue_.empty(); --left) {
    states_[queue_.front().parameter].fetched_for = queue_.front().step;
    queue_.pop_front();
  }
  if (options_.zero3.prefetch_bucket <= 0) return;
  const std::int64_t most = std::min(options_.zero3.max_live - gathered_, options_.zero3.prefetch_bucket);
  std::vector<std::size_t> ahead;
  for (std::int64_t together = 0; !queue_.empty() && together < most;) {
    const Use use = queue_.front();
    queue_.pop_front();
    State& s = states_[use.parameter];
    s.fetched_for = std::max(s.fetched_for, use.step);
    if (s.status != Status::not_available || std::find(ahead.begin(), ahead.end(), use.parameter) != ahead.end())
      continue;
    ahead.push_back(use.parameter);
    together += elements(use.parameter);
  }
  gather(std::move(ahead));
}

/// What is used again within max_reuse_distance stays, as does what was gathered ahead for later. Told once for each
/// step of the trace.
const std::vector<std::size_t>& ParameterCoordinator::released_by(const Module& module) {
  const auto [found, fresh] = released_.try_emplace({step_, module.first});
  std::vector<std::size_t>& parameters = found->second;
  if (!fresh) return parameters;
  for (const std::size_t p : module.parameters())
    if (!is_persistent(p) && states_[p].fetched_for <= step_) parameters.push_back(p);
  std::int64_t traversed = 0;
  for (auto i = static_cast<std::size_t>(step_); i < modules_.size(); ++i) {
    if (traversed >= options_.zero3.max_reuse_distance || parameters.empty()) break;
    for (const std::size_t p : modules_[i].parameters()) {
      std::erase(parameters, p);
      traversed += elements(p);
    }
  }
  return parameters;
}

void ParameterCoordinator::release(const Module& module, bool forward) {
  if (r_.tape().muted()) return;
  if (!forward) std::erase(in_backward_, module);
  if (module.count == 0) return;
  const std::vector<std::size_t> own = module.parameters();
  const std::vector<std::size_t>& to_release = trace_ == Trace::complete ? released_by(module) : own;
  r_.tape().begin_op("release");
  for (const std::size_t p : own) {
    std::erase(states_[p].used_by, module.name);
    if (std::find(to_release.begin(), to_release.end(), p) != to_release.end()) release(p);
  }
}

void ParameterCoordinator::release_leftovers() {
  r_.tape().begin_op("release");
  for (; !in_backward_.empty(); in_backward_.pop_back()) {
    const Module& module = in_backward_.back();
    for (const std::size_t p : module.parameters()) {
      std::erase(states_[p].used_by, module.name);
      if (!is_persistent(p)) release(p);
    }
  }
}

void ParameterCoordinator::release_all() {
  for (std::size_t p = 0; p < states_.size(); ++p) {
    wait_for(p);
    r_.tape().begin_op("release");
    states_[p].used_by.clear();
    release(p);
  }
}

/// _allgather_params_coalesced() leaves parts where they are on one rank; of one parameter it is not asked.
void ParameterCoordinator::gather_persistent() {
  std::vector<std::size_t> persistent;
  for (std::size_t p = 0; p < states_.size(); ++p)
    if (is_persistent(p)) persistent.push_back(p);
  const bool copied = options_.ranks > 1 || persistent.size() == 1 || options_.offload == Offload::all;
  Tensors copies;
  if (options_.offload == Offload::all)
    for (const std::size_t p : persistent) copies.push_back(copied_part(p));
  for (const std::size_t p : persistent) {
    if (copied) fill(p, take(part(p) * options_.ranks, "all-gather", Category::gathered));
    states_[p].status = Status::available;
  }
}

void ParameterCoordinator::gather_and_release(std::size_t p) {
  Tensor copy;
  if (options_.offload == Offload::all) copy = copied_part(p);
  r_.tape().give_back(take(part(p) * options_.ranks, "create_reduce_and_remove_grad_hooks", Category::gathered));
}

}  // namespace shard::like::eager
