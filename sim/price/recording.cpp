// Kernels find their operator by the id that the profiler gave it, or by the correlation of an older one.
#include "sim/price/recording.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/cost/laws/moved.h"
#include "sim/price/operator_walk.h"
#include "sim/price/price.h"
#include "sim/price/tensors.h"

namespace shard::price {
namespace {

class Joining {
 public:
  Joining(const import::KinetoProgram& recording, const cluster::Cluster& card)
      : recording_(recording), card_(card), callers_(callers_of(recording)) {
    for (std::size_t i = 0; i < recording.kernels.size(); ++i)
      if (const import::KinetoKernel& kernel = recording.kernels[i]; kernel.category == "kernel")
        blocks_[{callers_[i], kernel.name}] += blocks_in(kernel);
  }

  LawsBeside run() {
    for (std::size_t i = 0; i < callers_.size(); ++i) add(recording_.kernels[i], callers_[i]);
    LawsBeside found = std::move(found_);
    for (auto& [name, beside] : laws_) {
      found.measured += beside.measured;
      found.by_law += beside.by_law;
      found.laws.push_back(std::move(beside));
    }
    for (auto& [name, beside] : not_known_) {
      found.without_law += beside.measured;
      found.not_known.push_back(std::move(beside));
    }
    const auto longest = [](const Beside& beside) { return -beside.measured.count(); };
    for (auto& [name, beside] : by_name_) found.differing.push_back(std::move(beside));
    std::ranges::stable_sort(found.differing, {}, [](const Beside& beside) {
      return -std::abs(beside.measured.count() - beside.by_law.count());
    });
    std::ranges::stable_sort(found.laws, {}, longest);
    std::ranges::stable_sort(found.not_known, {}, longest);
    return found;
  }

 private:
  static std::int64_t blocks_in(const import::KinetoKernel& kernel) {
    std::int64_t all = 1;
    for (const std::int64_t each : kernel.grid) all *= std::clamp<std::int64_t>(each, 1, std::int64_t{1} << 20);
    return all;
  }

  void add(const import::KinetoKernel& kernel, std::int32_t caller) {
    const Seconds measured{static_cast<double>(kernel.duration_ns) * 1e-9};
    if (is_exchange(kernel)) {
      found_.exchanges += measured;
      return;
    }
    if (kernel.category != "kernel" && has_any(kernel.name, "HtoD", "DtoH")) {
      found_.host_copies += measured;  // pageable memory, a busy host, other copies: no law
      return;
    }
    const std::optional<Priced> priced = price_of(kernel, caller);
    Beside& beside = priced ? laws_[std::string(priced->law)] : not_known_[kernel.name];
    beside.name = priced ? std::string(priced->law) : kernel.name;
    ++beside.kernels;
    beside.measured += measured;
    if (!priced) return;
    beside.by_law += priced->time;
    Beside& of_name = by_name_[kernel.name];
    of_name.name = kernel.name;
    ++of_name.kernels;
    of_name.measured += measured;
    of_name.by_law += priced->time;
  }

  std::optional<Priced> price_of(const import::KinetoKernel& kernel, std::int32_t caller) {
    if (kernel.category != "kernel") {
      if (kernel.bytes < 0) return {};
      const double passes = has(kernel.name, "DtoD") ? 2 : 1;
      // The engine fills a little without a kernel's launch (A100, H100: 0.9 to 1.3 us).
      constexpr double kFill = 1e-6;
      if (!has(kernel.name, "Memcpy"))
        return Priced{.time = Seconds{kFill} + cost::moved_time(static_cast<double>(kernel.bytes), card_) -
                              cost::moved_time(0, card_),
                      .doubt = 0.3,
                      .law = "copies"};
      return Priced{
          .time = cost::moved_time(passes * static_cast<double>(kernel.bytes), card_), .doubt = 0.15, .law = "copies"};
    }
    KernelCall call;
    call.name = kernel.name;
    call.grid = kernel.grid;
    call.block = kernel.block;
    if (caller >= 0)
      call.op = &operators_.emplace_back(operator_of(recording_.operators[static_cast<std::size_t>(caller)]));
    const std::int64_t all = blocks_[{caller, kernel.name}];
    if (all > 0) call.share = static_cast<double>(blocks_in(kernel)) / static_cast<double>(all);
    return price(call, card_);
  }

  const import::KinetoProgram& recording_;
  const cluster::Cluster& card_;
  const std::vector<std::int32_t> callers_;
  std::map<std::pair<std::int32_t, std::string>, std::int64_t> blocks_;
  std::deque<Operator> operators_;
  std::map<std::string, Beside> laws_, not_known_, by_name_;
  LawsBeside found_;
};

}  // namespace

Operator operator_of(const import::KinetoOperator& recorded) {
  Operator made;
  made.name = recorded.name;
  made.values = recorded.values;
  for (const import::Operand& input : recorded.inputs)
    made.inputs.push_back(
        {.sizes = input.sizes, .strides = input.strides, .type = input.type, .argument = input.argument});
  return made;
}

bool is_exchange(const import::KinetoKernel& kernel) {
  return kernel.name.starts_with("nccl") ||
         has_any(kernel.name, "ncclKernel", "ncclDevKernel", "void nccl", "multimem_all_reduce");
}

std::vector<std::int32_t> callers_of(const import::KinetoProgram& recording) {
  std::vector<const import::KinetoCall*> calls;
  for (const import::KinetoCall& call : recording.calls)
    if (call.correlation >= 0) calls.push_back(&call);
  std::ranges::stable_sort(calls, {}, &import::KinetoCall::begin_ns);
  std::unordered_map<std::int64_t, std::int32_t> by_id, by_correlation;
  for (std::size_t i = 0; i < recording.operators.size(); ++i)
    if (recording.operators[i].external_id >= 0)
      by_id.emplace(recording.operators[i].external_id, static_cast<std::int32_t>(i));
  OperatorWalk walk(recording.operators);
  for (const import::KinetoCall* const call : calls)
    if (walk.to(call->thread, call->begin_ns)) by_correlation[call->correlation] = walk.innermost_with_tensors();
  std::vector<std::int32_t> callers;
  for (const import::KinetoKernel& kernel : recording.kernels) {
    const auto launched = by_correlation.find(kernel.correlation);
    const auto named = by_id.find(kernel.external_id);
    callers.push_back(launched != by_correlation.end() && launched->second >= 0 ? launched->second
                      : named != by_id.end()                                    ? named->second
                                                                                : -1);
  }
  return callers;
}

double LawsBeside::coverage() const {
  const double all = measured.count() + without_law.count();
  return all > 0 ? measured.count() / all : 0;
}
double LawsBeside::error() const {
  return measured.count() > 0 ? by_law.count() / measured.count() - 1 : 0;
}

LawsBeside laws_beside(const import::KinetoProgram& recording, const cluster::Cluster& card) {
  return Joining(recording, card).run();
}

}  // namespace shard::price
