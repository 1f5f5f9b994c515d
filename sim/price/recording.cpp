// Kernels find their operator by the id that the profiler gave it, or by the correlation of an older one.
#include "sim/price/recording.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/cost/laws/moved.h"
#include "sim/price/price.h"
#include "sim/price/tensors.h"

namespace shard::price {
namespace {

bool is_exchange(const std::string& name) {
  return name.starts_with("nccl") || has_any(name, "ncclKernel", "ncclDevKernel", "void nccl");
}

Operator operator_of(const import::KinetoOperator& from) {
  Operator made;
  made.name = from.name;
  made.values = from.values;
  for (const import::Operand& input : from.inputs)
    made.inputs.push_back(
        {.sizes = input.sizes, .strides = input.strides, .type = input.type, .argument = input.argument});
  return made;
}

class Joining {
 public:
  Joining(const import::KinetoProgram& recording, const cluster::Cluster& card) : recording_(recording), card_(card) {
    for (std::size_t i = 0; i < recording.operators.size(); ++i)
      if (recording.operators[i].external_id >= 0) by_id_.emplace(recording.operators[i].external_id, i);
    for (const import::KinetoKernel& kernel : recording.kernels)
      if (kernel.category == "kernel") blocks_[{id_of(kernel), kernel.name}] += blocks_in(kernel);
  }

  LawsBeside run() {
    for (const import::KinetoKernel& kernel : recording_.kernels) add(kernel);
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
    std::ranges::stable_sort(found.laws, {}, longest);
    std::ranges::stable_sort(found.not_known, {}, longest);
    return found;
  }

 private:
  static std::int64_t id_of(const import::KinetoKernel& kernel) {
    return kernel.external_id >= 0 ? kernel.external_id : kernel.correlation;
  }
  static std::int64_t blocks_in(const import::KinetoKernel& kernel) {
    std::int64_t all = 1;
    for (const std::int64_t each : kernel.grid) all *= std::clamp<std::int64_t>(each, 1, std::int64_t{1} << 20);
    return all;
  }

  void add(const import::KinetoKernel& kernel) {
    const Seconds measured{static_cast<double>(kernel.duration_ns) * 1e-9};
    if (is_exchange(kernel.name)) {
      found_.exchanges += measured;
      return;
    }
    const std::optional<Priced> priced = price_of(kernel);
    Beside& beside = priced ? laws_[std::string(priced->law)] : not_known_[kernel.name];
    beside.name = priced ? std::string(priced->law) : kernel.name;
    ++beside.kernels;
    beside.measured += measured;
    if (priced) beside.by_law += priced->time;
  }

  std::optional<Priced> price_of(const import::KinetoKernel& kernel) {
    if (kernel.category != "kernel") {
      // Over PCIe the host decides: pageable memory, other copies.
      const bool on_device = has_any(kernel.name, "DtoD", "Memset") || kernel.category == "gpu_memset";
      if (!on_device || kernel.bytes < 0) return {};
      const double passes = has(kernel.name, "DtoD") ? 2 : 1;
      return Priced{.time = cost::moved_time(passes * static_cast<double>(kernel.bytes), card_),
                    .doubt = 0.15,
                    .law = "copies"};
    }
    KernelCall call;
    call.name = kernel.name;
    call.grid = kernel.grid;
    call.block = kernel.block;
    if (const auto found = by_id_.find(id_of(kernel)); found != by_id_.end())
      call.op = &operators_.emplace_back(operator_of(recording_.operators[found->second]));
    const std::int64_t all = blocks_[{id_of(kernel), kernel.name}];
    if (all > 0) call.share = static_cast<double>(blocks_in(kernel)) / static_cast<double>(all);
    return price(call, card_);
  }

  const import::KinetoProgram& recording_;
  const cluster::Cluster& card_;
  std::unordered_map<std::int64_t, std::size_t> by_id_;
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> blocks_;
  std::deque<Operator> operators_;
  std::map<std::string, Beside> laws_, not_known_;
  LawsBeside found_;
};

}  // namespace

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
