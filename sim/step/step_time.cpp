// Blocks, exchanges and the host in virtual time.
#include "sim/step/step_time.h"

#include <algorithm>
#include <cmath>

#include "sim/cost/laws/card_figures.h"
#include "sim/cost/laws/exchange.h"
#include "sim/cost/laws/moved.h"
#include "sim/step/block.h"

namespace shard::step {
namespace {

constexpr double kBetweenKernels = 1e-6;
constexpr double kCompiledShareOfKernels = 0.5;  ///< of the gaps, and of launches: several operators in one
constexpr double kCompiledShareOfHost = 0.4;
constexpr double kOperator = 5.5e-6;   ///< of the host, for an operator in eager mode
constexpr double kFsdpHook = 350e-6;   ///< of the host, at each block that is gathered
constexpr double kDtensor = 50e-6;     ///< of the host, for an operator on a DTensor in eager mode
constexpr double kBackwardHost = 0.8;  ///< of an operator's host time, which C++ alone spends
constexpr double kPieces = 0.2;        ///< of an exchange that is cut into pieces beside products

struct Parameters {
  double block = 0, embedding = 0, all = 0;  ///< of one rank of the tensor-parallel group; all: of the last stage
};

/// Blocks of one stage of a pipeline.
double blocks_of(const TrainingStep& s) {
  return static_cast<double>(s.model.layers) / static_cast<double>(s.spread.pipeline);
}

Parameters parameters_of(const TrainingStep& s) {
  const auto of = static_cast<double>(s.spread.tensor);
  return {.block = s.model.block_parameters() / of,
          .embedding = s.model.embedding_parameters() / of,
          .all = s.spread.pipeline == 1
                     ? s.model.parameters() / of
                     : (s.model.block_parameters() * blocks_of(s) + s.model.embedding_parameters()) / of};
}

/// What a block's computation and what runs beside it come to.
struct Beside {
  double total = 0, exposed = 0;
};
Beside beside(double computes, double exchanges) {
  const double slowed =
      computes + cost::kContention * std::min(exchanges, computes * (1 + cost::kContention)) / (1 + cost::kContention);
  const double total = std::max(slowed, exchanges);
  return {.total = total, .exposed = total - computes};
}

class Step {
 public:
  Step(const TrainingStep& step, const cluster::Cluster& cluster)
      : s_(step),
        c_(cluster),
        p_(parameters_of(step)),
        block_(block_time(step, cluster)),
        loss_(loss_time(step, cluster)) {}

  StepTime time();

 private:
  [[nodiscard]] double exchange(Collective kind, double bytes, std::int64_t ranks, std::int64_t stride) const {
    return s_.spread.no_exchange ? 0 : cost::exchange_time(kind, bytes, {.ranks = ranks, .stride = stride}, c_).count();
  }
  [[nodiscard]] bool gathers() const { return s_.spread.stage == 3 && s_.data_ranks() > 1; }
  [[nodiscard]] double gather(double parameters) const {
    if (!gathers()) return 0;
    const double bytes = s_.gathers_8_bits ? 1 : s_.gathered_bytes;
    return exchange(Collective::all_gather, parameters * bytes, s_.spread.shard_ranks, s_.spread.tensor);
  }
  [[nodiscard]] double reduce(double parameters) const;
  void tensor_exchanges();
  void repeated();
  void around_gathers();
  void host();
  void micro_step(bool reduces, double times);
  void pipeline();
  void optimizer();
  void add(const char* name, double seconds) {
    if (seconds <= 0) return;
    for (StepPart& part : parts_)
      if (part.name == name) return void(part.time += Seconds{seconds});
    parts_.push_back({.name = name, .time = Seconds{seconds}});
  }
  void add(const KernelSum& sum, double times) {
    for (std::size_t i = 0; i < kKernelKinds; ++i) add(to_string(static_cast<KernelKind>(i)), sum.seconds[i] * times);
  }

  const TrainingStep& s_;
  const cluster::Cluster& c_;
  const Parameters p_;
  BlockTime block_;
  const BlockTime loss_;
  KernelSum again_{};                                    ///< forward kernels that backward repeats
  double forward_exchange_ = 0, backward_exchange_ = 0;  ///< of a block's tensor parallelism, exposed
  double forward_copies_ = 0, backward_copies_ = 0;
  double forward_host_ = 0, backward_host_ = 0;
  double total_ = 0;
  double stage_seconds_ = 0;  ///< of a micro-step's blocks, with nothing beside them
  std::vector<StepPart> parts_;
};

double Step::reduce(double parameters) const {
  const std::int64_t data = s_.data_ranks(), tensor = s_.spread.tensor;
  const double bytes = parameters * s_.reduced_bytes;
  if (data <= 1) return 0;
  if (s_.spread.stage == 0) return exchange(Collective::all_reduce, bytes, data, tensor);
  const std::int64_t among = s_.spread.stage == 3 ? s_.spread.shard_ranks : data;
  double time = exchange(Collective::reduce_scatter, bytes, among, tensor);
  if (among < data)
    time += exchange(Collective::all_reduce, bytes / static_cast<double>(among), data / among, tensor * among);
  return time;
}

void Step::tensor_exchanges() {
  const std::int64_t t = s_.spread.tensor;
  if (t <= 1) return;
  const double bytes = static_cast<double>(s_.tokens()) * static_cast<double>(s_.model.hidden) * s_.value_bytes();
  if (s_.spread.sequence_parallel) {
    const double gather = exchange(Collective::all_gather, bytes, t, 1);
    forward_exchange_ = 2 * (gather + exchange(Collective::reduce_scatter, bytes, t, 1));
    backward_exchange_ = forward_exchange_ + 2 * gather;
  } else {
    forward_exchange_ = backward_exchange_ = 2 * exchange(Collective::all_reduce, bytes, t, 1);
  }
  if (s_.code == Code::written_out) {  // DTensor's own copies around each
    const double copy = cost::moved_time(2 * bytes, c_).count();
    forward_exchange_ += 4 * copy, backward_exchange_ += 6 * copy;
  }
  if (s_.spread.asynchronous_tensor) forward_exchange_ *= kPieces, backward_exchange_ *= kPieces;
}

void Step::repeated() {
  switch (s_.recompute) {
    case Recompute::none: return;
    case Recompute::block:
      again_.add(block_.forward);
      backward_exchange_ += forward_exchange_;
      return;
    case Recompute::every_other_block: again_.add(block_.forward, 0.5); return;
    case Recompute::selective:
      // Half of the products, and what stands between them.
      for (const KernelKind kind : {KernelKind::product, KernelKind::cast})
        again_.add(kind, Seconds{block_.forward.of(kind) * 0.5}, block_.forward.kernels * 0.1);
      again_.add(KernelKind::moved, Seconds{block_.forward.of(KernelKind::moved)}, block_.forward.kernels * 0.5);
      backward_exchange_ += forward_exchange_ / 2;
      return;
  }
}

void Step::around_gathers() {
  if (!gathers()) return;
  if (s_.copies_around_gathers) {
    forward_copies_ = cost::moved_time(p_.block * s_.gathered_bytes * 2, c_).count();
    backward_copies_ = forward_copies_ + cost::moved_time(p_.block * 3 * s_.value_bytes(), c_).count();
  } else {
    backward_copies_ = cost::moved_time(p_.block * (s_.value_bytes() + s_.reduced_bytes), c_).count();
  }
}

void Step::host() {
  double of_operator = kOperator;
  if (s_.spread.tensor > 1 && s_.code == Code::written_out && !s_.compiled) of_operator += kDtensor;
  const double backward = block_.backward.kernels * kBackwardHost + again_.kernels;
  const double share = s_.compiled ? kCompiledShareOfHost : 1;
  const double hook = gathers() ? kFsdpHook : 0;
  forward_host_ = (block_.forward.kernels * of_operator + hook) * share;
  backward_host_ = (backward * of_operator + 1.2 * hook) * share;
}

void Step::micro_step(bool reduces, double times) {
  const double gap = kBetweenKernels * (s_.compiled ? kCompiledShareOfKernels : 1);
  const double forward_gaps = block_.forward.kernels * gap;
  const double backward_gaps = (block_.backward.kernels + again_.kernels) * gap;
  const double forward = block_.forward.total() + forward_exchange_ + forward_copies_ + forward_gaps;
  const double backward =
      block_.backward.total() + again_.total() + backward_exchange_ + backward_copies_ + backward_gaps;
  const double blocks = blocks_of(s_);
  const double gather_block = gather(p_.block), gather_ends = gather(p_.embedding);
  const double gather_back = s_.spread.gathers_again ? gather_block : 0;
  const double reduce_block = reduces ? reduce(p_.block) : 0, reduce_ends = reduces ? reduce(p_.embedding) : 0;

  double exposed = 0, waits = 0;
  stage_seconds_ = blocks * (std::max(forward, forward_host_) + std::max(backward, backward_host_));
  const auto run = [&](double computes, double exchanges, double host, double count) {
    const Beside both = beside(computes, exchanges);
    exposed += both.exposed * count;
    waits += std::max(0.0, host - both.total) * count;
    total_ += times * count * std::max(both.total, host);
  };
  const double hidden = static_cast<double>(s_.tokens()) * static_cast<double>(s_.model.hidden);
  const double lookup = cost::moved_time(hidden * 2 * s_.value_bytes(), c_).count();
  const double last = cost::moved_time(hidden * 3 * s_.value_bytes(), c_).count() +
                      cost::moved_time(p_.embedding * 2 * s_.value_bytes(), c_).count();
  const double unhidden = gather_ends + gather_block + reduce_ends;
  total_ += times * (lookup + last + unhidden + loss_.forward.total());
  exposed += unhidden;
  run(forward, gather_block, forward_host_, std::max(0.0, blocks - 1));
  run(forward, s_.model.tied ? 0 : gather_ends, forward_host_, 1);
  run(loss_.backward.total(), gather_back, 0, 1);
  run(backward, gather_back + reduce_block, backward_host_, std::max(0.0, blocks - 1));
  run(backward, reduce_block, backward_host_, 1);

  add(block_.forward, times * blocks);
  add(block_.backward, times * blocks);
  add(again_, times * blocks);
  add(loss_.forward, times);
  add(loss_.backward, times);
  add(to_string(KernelKind::moved), times * (lookup + last));
  add("copies of parameters", times * blocks * (forward_copies_ + backward_copies_));
  add("between kernels", times * blocks * (forward_gaps + backward_gaps));
  add("tensor-parallel communication", times * blocks * (forward_exchange_ + backward_exchange_));
  add("exposed communication", times * exposed);
  add("waiting for the host", times * waits);
}

/// While a pipeline fills and drains, the last stage waits for the others' blocks. Activations and their gradients are
/// handed on beside nothing, but that interleaved stages do so beside the next chunk, as Megatron's do.
void Step::pipeline() {
  const std::int64_t p = s_.spread.pipeline;
  if (p <= 1) return;
  const std::int64_t stride = s_.spread.ranks / p;
  const auto waits = static_cast<double>(p - 1);
  const double share = waits / static_cast<double>(s_.spread.chunks);
  const double part = s_.spread.sequence_parallel ? static_cast<double>(s_.spread.tensor) : 1;
  const double bytes = static_cast<double>(s_.tokens()) * static_cast<double>(s_.model.hidden) * 2 / part;
  // Of two, each gives its half to the other.
  const double hand_on = exchange(Collective::all_gather, 2 * bytes, 2, stride);
  const double steps = waits + (s_.spread.chunks > 1 ? 0 : static_cast<double>(s_.accumulation));
  double exchanged = 2 * steps * hand_on;
  if (s_.model.tied)
    exchanged += exchange(Collective::all_reduce, p_.embedding * s_.reduced_bytes, 2, stride * (p - 1));
  add("pipeline bubble", share * stage_seconds_);
  add("pipeline communication", exchanged);
  total_ += share * stage_seconds_ + exchanged;
}

void Step::optimizer() {
  constexpr double kStart = 100e-6;
  double owned = p_.all;
  if (s_.spread.stage == 3)
    owned /= static_cast<double>(s_.spread.shard_ranks);
  else if (s_.spread.stage >= 1)
    owned /= static_cast<double>(s_.data_ranks());
  constexpr double kNorm = 12;  // gradients read for their norm, read and written by clipping
  const double update =
      cost::moved_time(owned * s_.optimizer_bytes, c_).count() + cost::moved_time(owned * kNorm, c_).count() + kStart;
  total_ += update;
  add("optimizer", update);
  // Megatron's gathers run beside the next forward.
  const bool gathers_after = (s_.spread.stage == 1 || s_.spread.stage == 2) && s_.code != Code::megatron;
  if (!gathers_after) return;
  const double gather = exchange(Collective::all_gather, p_.all * 2, s_.data_ranks(), s_.spread.tensor);
  total_ += gather;
  add("exposed communication", gather);
}

double model_flops(const TrainingStep& s, const Parameters& p) {
  const double weights = p.block * static_cast<double>(s.model.layers) + p.embedding;
  const double attention = 6.0 * static_cast<double>(s.model.layers * s.model.heads * s.model.head_size * s.sequence) /
                           static_cast<double>(s.spread.tensor);  // half of 12: causal
  return (6 * weights + attention) * static_cast<double>(s.tokens() * s.accumulation) /
         static_cast<double>(s.spread.pipeline);
}

StepTime Step::time() {
  tensor_exchanges();
  repeated();
  around_gathers();
  host();
  // Gradients that stay whole are reduced in the last micro-step alone.
  const bool each = s_.spread.stage >= 2;
  micro_step(true, each ? static_cast<double>(s_.accumulation) : 1);
  if (!each && s_.accumulation > 1) micro_step(false, static_cast<double>(s_.accumulation - 1));
  pipeline();
  optimizer();
  if (s_.spread.ranks > 1) {
    const double late = total_ * cost::share_of_waiting(static_cast<double>(s_.spread.ranks));
    add("waiting for the slowest rank", late);
    total_ += late;
  }
  const Doubt doubt = doubt_of(s_, c_);
  StepTime result{.seconds = Seconds{total_},
                  .low = Seconds{total_ * (1 - doubt.below)},
                  .high = Seconds{total_ * (1 + doubt.above)},
                  .parts = std::move(parts_)};
  result.tokens_per_second = static_cast<double>(s_.tokens() * s_.accumulation) /
                             static_cast<double>(s_.spread.tensor * s_.spread.pipeline) / total_;
  result.flops_per_second = model_flops(s_, p_) / total_;
  result.model_flops_share = result.flops_per_second / cost::peak_of_16_bits(c_);
  return result;
}

}  // namespace

Result<StepTime> step_time(const TrainingStep& step, const cluster::Cluster& cluster) {
  if (!cluster.kernel_laws)
    return Error{Errc::contradiction, "nothing is known of how long kernels take on '" + cluster.name + "'",
                 "--cluster", "a cluster whose description has kernel_laws: those of GPUs that Shardscope brings have"};
  if (!cluster.inter_host && step.spread.ranks > cluster.devices_per_host)
    return Error{Errc::contradiction, "'" + cluster.name + "' is one host", "--cluster",
                 "a cluster with a link between hosts"};
  return Step(step, cluster).time();
}

}  // namespace shard::step
