// Products by what cuBLAS was called with, kernels by their names and operators, collectives by bytes and ranks.
#include "profiler/steptime/prices.h"

#include <algorithm>

#include "sim/cost/laws/exchange.h"
#include "sim/cost/laws/moved.h"
#include "sim/price/price.h"
#include "sim/price/recording.h"
#include "sim/price/tensors.h"

namespace shard::steptime {
namespace {

constexpr std::string_view kCopies = "copies", kOverPcie = "copies between host and device", kExchanges = "exchanges",
                           kNoLaw = "no law";

/// Of an element, by cudaDataType_t.
double bytes_of(std::int64_t type) {
  constexpr std::int64_t kFloat = 0, kDouble = 1, kInt8 = 3, kUint8 = 8, kInt32 = 10, kFirstFloat8 = 28,
                         kLastFloat8 = 32, kFloat4 = 33;
  if (type == kFloat || type == kInt32) return 4;
  if (type == kDouble) return 8;
  if (type == kFloat4) return 0.5;
  return type == kInt8 || type == kUint8 || (type >= kFirstFloat8 && type <= kLastFloat8) ? 1 : 2;
}

/// Whether tensor cores compute, by the operands and cublasComputeType_t: CUBLAS_COMPUTE_32F_FAST_16F, _16BF, _TF32.
bool on_tensor_cores(std::int64_t type, std::int64_t computes) {
  constexpr std::int64_t kFast16 = 74, kFastBrain16 = 75, kFastTensorFloat = 77;
  return bytes_of(type) <= 2 || computes == kFast16 || computes == kFastBrain16 || computes == kFastTensorFloat;
}

bool is_pair(std::int64_t kind) {
  return kind == static_cast<std::int64_t>(NcclCall::send) || kind == static_cast<std::int64_t>(NcclCall::receive);
}

}  // namespace

Prices::Prices(const WorkList& work, const import::KinetoProgram& operators, const StepCalls& calls,
               const cluster::Cluster& card)
    : work_(work), card_(card) {
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    const WorkItem& item = work.items[i];
    if (item.kind != Work::collective) continue;
    Group& group = groups_.try_emplace(item.numbers[6], Group{.first = i}).first->second;
    const auto bytes = static_cast<double>(item.numbers[1]);
    group.bytes += bytes;
    if (item.numbers[0] == static_cast<std::int64_t>(NcclCall::send)) group.sent += bytes;
    if (item.numbers[0] == static_cast<std::int64_t>(NcclCall::receive)) group.received += bytes;
  }
  for (const Call& call : calls.calls)
    if (work.items[call.item].capture == 0) look_at(call, operators);
  for (const Call& call : calls.captured) look_at(call, operators);
}

void Prices::look_at(const Call& call, const import::KinetoProgram& operators) {
  const WorkItem& item = work_.items[call.item];
  if (const std::int32_t index = call.operator_index; index >= 0 && !operators_.contains(index))
    operators_.emplace(index, price::operator_of(operators.operators[static_cast<std::size_t>(index)]));
  if (item.kind == Work::kernel && call.operator_index >= 0)
    blocks_[{call.operator_index, item.name}] += item.numbers[0] * item.numbers[1] * item.numbers[2];
  if (item.kind != Work::collective || call.group < 0) return;
  const std::vector<std::int64_t>& ranks = operators.operators[static_cast<std::size_t>(call.group)].process_group;
  if (ranks.size() > 1) strides_[item.numbers[2]] = std::max<std::int64_t>(1, ranks[1] - ranks[0]);
}

bool Prices::is_part_of_earlier(const Call& call) const {
  const WorkItem& item = work_.items[call.item];
  return item.kind == Work::collective && groups_.at(item.numbers[6]).first != call.item;
}

Cost Prices::of(const Call& call) const {
  const WorkItem& item = work_.items[call.item];
  const auto& n = item.numbers;
  if (item.kind == Work::collective) return exchange(call);
  if (item.kind == Work::copy) return copy(item);
  if (item.kind == Work::fill)
    return {.seconds = cost::moved_time(static_cast<double>(n[0]), card_).count(), .doubt = 0.15, .law = kCopies};
  price::KernelCall asked;
  asked.name = work_.name_of(item);
  if (call.operator_index >= 0) asked.op = &operators_.at(call.operator_index);
  if (item.kind == Work::kernel) {
    asked.grid = {n[0], n[1], n[2]};
    asked.block = {n[3], n[4], n[5]};
    if (const auto all = blocks_.find({call.operator_index, item.name}); all != blocks_.end() && all->second > 0)
      asked.share = static_cast<double>(n[0] * n[1] * n[2]) / static_cast<double>(all->second);
  }
  if (item.kind == Work::product)
    asked.product = price::ProductCall{.m = n[0],
                                       .n = n[1],
                                       .k = n[2],
                                       .batch = n[3],
                                       .operand_bytes = bytes_of(n[4]),
                                       .result_bytes = bytes_of(n[6]),
                                       .tensor_cores = on_tensor_cores(n[4], n[7])};
  if (const std::optional<price::Priced> priced = price::price(asked, card_))
    return {.seconds = priced->time.count(), .doubt = priced->doubt, .law = priced->law};
  return {.seconds = assumed(asked.op), .law = kNoLaw, .known = false};
}

double Prices::assumed(const price::Operator* op) const {
  constexpr double kBytesOfElement = 2;
  double bytes = 0;
  for (std::size_t i = 0; op != nullptr && i < op->inputs.size(); ++i) {
    if (!op->inputs[i].sizes.empty()) bytes += price::elements(op->inputs[i]) * kBytesOfElement;
  }
  return cost::moved_time(bytes, card_).count();
}

Cost Prices::copy(const WorkItem& item) const {
  const auto bytes = static_cast<double>(item.numbers[0]);
  const bool from_host = item.numbers[1] != 0, to_host = item.numbers[2] != 0;
  if (from_host && to_host) return {.law = kCopies};
  if (!from_host && !to_host)
    return {.seconds = cost::moved_time(2 * bytes, card_).count(), .doubt = 0.1, .law = kCopies};
  constexpr double kStart = 10e-6;
  constexpr double kUsualBandwidth = 20e9;  // PCIe 4, of a cluster that does not say
  const double latency = card_.host_link ? card_.host_link->latency.count() : kStart;
  const double bandwidth = card_.host_link ? card_.host_link->bandwidth.count() : kUsualBandwidth;
  return {.seconds = latency + bytes / bandwidth, .doubt = 0.3, .law = kOverPcie};
}

Cost Prices::exchange(const Call& call) const {
  const WorkItem& item = work_.items[call.item];
  const std::int64_t kind = item.numbers[0], ranks = item.numbers[3];
  const Group& group = groups_.at(item.numbers[6]);
  if (group.first != call.item) return {.law = kExchanges};
  const auto told = strides_.find(item.numbers[2]);
  const cost::Members members{.ranks = is_pair(kind) ? 2 : ranks, .stride = told == strides_.end() ? 1 : told->second};
  // A pair sends all of it, of which the law of a gather among two moves half.
  const double bytes = is_pair(kind) ? 2 * std::max(group.sent, group.received) : group.bytes;
  const bool all_reduce = kind == static_cast<std::int64_t>(NcclCall::all_reduce);
  const double seconds =
      cost::exchange_time(all_reduce ? Collective::all_reduce : Collective::all_gather, bytes, members, card_).count();
  const bool in_host = members.ranks * members.stride <= card_.devices_per_host;
  return {.seconds = seconds, .doubt = in_host ? 0.15 : 0.3, .law = kExchanges};
}

}  // namespace shard::steptime
