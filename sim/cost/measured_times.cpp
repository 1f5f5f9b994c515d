// Which occupancy is nearest, which law is meant, and what it says.
#include "sim/cost/measured_times.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shard::cost {
namespace {

double correction(const std::vector<cluster::Correction>& at, double moved) {
  if (at.empty()) return 1;
  const auto after = std::ranges::find_if(at, [&](const cluster::Correction& c) { return c.moved_bytes >= moved; });
  if (after == at.begin()) return at.front().factor;
  if (after == at.end()) return at.back().factor;
  const cluster::Correction& low = *(after - 1);
  const double from = std::log(std::max(low.moved_bytes, 1.0));
  const double to = std::log(std::max(after->moved_bytes, 1.0));
  if (!(to > from)) return after->factor;
  const double share = (std::log(std::max(moved, 1.0)) - from) / (to - from);
  return std::exp((1 - share) * std::log(low.factor) + share * std::log(after->factor));
}

/// How well a law of one type stands for another: 0 is the type itself.
int distance(Dtype law, Dtype wanted) {
  if (law == wanted) return 0;
  return is_half(law) == is_half(wanted) ? 1 : 2;
}

double ratio(double a, double b) {
  return std::abs(std::log(a / b));
}

/// By how much ops take longer since so many threads share the cores.
double turns(double ranks, double threads, double cores) {
  return std::max(1.0, ranks * threads / cores);
}

bool is_product(const plan::Op& op) {
  const auto* c = std::get_if<plan::Compute>(&op.action);
  return c != nullptr && model::row(c->kind).work.of == model::Work::Of::product;
}

}  // namespace

bool obeys_law(const plan::Plan& plan, const plan::Op& op) {
  if (plan.target.device == plan::Device::cpu) return true;
  bool device = false;
  bool other = false;
  for (const plan::Operand& o : op.operands) (plan.buffer(o.buffer).memory == Memory::device ? device : other) = true;
  if (std::holds_alternative<plan::Copy>(op.action)) return device && other;
  return device && !(plan.target.tensor_float && is_product(op));
}

Seconds law_time(const cluster::OpLaw& law, const plan::OpWork& work) {
  const double plain = law.call_seconds + work.flops * law.flop_seconds + work.weight_bytes * law.weight_byte_seconds +
                       work.bytes * law.byte_seconds;
  return Seconds{plain * correction(law.corrections, work.moved())};
}

MeasuredTimes::MeasuredTimes(const plan::Plan& plan, const cluster::Cluster& cluster, const cluster::Layout& layout) {
  if (!cluster.measured || cluster.measured->occupancies.empty()) return;
  // Kernels of another kind of device obey other laws.
  const bool cpu = cluster.device == cluster::DeviceKind::cpu;
  if (cpu != (plan.target.device == plan::Device::cpu)) return;
  choose_occupancy(*cluster.measured, plan.target.threads, layout.ranks_per_device,
                   cpu ? std::max(cluster.cores, 1) : 0);
  for (const cluster::OpLaw& law : occupancy_->laws) {
    const std::optional<plan::OpClass> which = plan::op_class(law.kind);
    if (!which) continue;
    const cluster::OpLaw*& best = laws_[which->index];
    const Dtype wanted = plan.target.storage;
    if (best == nullptr || distance(law.dtype, wanted) < distance(best->dtype, wanted)) best = &law;
  }
}

void MeasuredTimes::choose_occupancy(const cluster::Measured& measured, double threads, double ranks, double cores) {
  const std::vector<cluster::Occupancy>& known = measured.occupancies;
  if (cores < 1) {
    const auto apart = [&](const cluster::Occupancy& o) { return ratio(o.ranks, ranks); };
    occupancy_ = &*std::ranges::min_element(known, {}, apart);
    slower_ = ranks / occupancy_->ranks;
    return;
  }
  const double at_once = std::clamp(std::floor(cores / threads), 1.0, ranks);
  const auto far = [&](const cluster::Occupancy& o) {
    return ratio(o.ranks, at_once) + 2 * ratio(o.threads, std::min(threads, cores));
  };
  occupancy_ = &*std::ranges::min_element(known, {}, far);
  slower_ = turns(ranks, threads, cores) / turns(occupancy_->ranks, occupancy_->threads, cores) *
            (occupancy_->threads / threads);
}

std::optional<Seconds> MeasuredTimes::operator()(const plan::Plan& plan, const plan::Op& op) const {
  if (occupancy_ == nullptr) return std::nullopt;
  const cluster::OpLaw* law = laws_[plan::class_of(op).index];
  if (law == nullptr || !obeys_law(plan, op)) return std::nullopt;
  const bool meets = std::holds_alternative<plan::Communicate>(op.action);
  const Seconds around{occupancy_->between_seconds + (meets ? occupancy_->meeting_seconds : 0.0)};
  return slower_ * ((1 + occupancy_->waiting_share) * law_time(*law, plan::work_of(plan, op)) + around);
}

}  // namespace shard::cost
