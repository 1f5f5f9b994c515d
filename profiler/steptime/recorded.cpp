// A call's key is its operator's name with sizes and types of its tensors.
#include "profiler/steptime/recorded.h"

#include "sim/price/recording.h"

namespace shard::steptime {
namespace {

std::string key_of(const import::KinetoOperator& called) {
  std::string key = called.name;
  for (const import::Operand& input : called.inputs) {
    key += '|' + input.type;
    for (const std::int64_t size : input.sizes) key += ',' + std::to_string(size);
  }
  return key;
}

}  // namespace

Recorded::Recorded(const import::KinetoProgram& recording) {
  const std::vector<std::int32_t> callers = price::callers_of(recording);
  std::unordered_map<std::int32_t, double> by_operator;  // one call's
  for (std::size_t i = 0; i < callers.size(); ++i)
    if (callers[i] >= 0 && !price::is_exchange(recording.kernels[i]))
      by_operator[callers[i]] += static_cast<double>(recording.kernels[i].duration_ns) * 1e-9;
  for (const auto& [index, seconds] : by_operator) {
    Sum& sum = by_call_[key_of(recording.operators[static_cast<std::size_t>(index)])];
    sum.seconds += seconds;
    ++sum.calls;
  }
}

std::optional<double> Recorded::of(const import::KinetoOperator& called) const {
  const auto found = by_call_.find(key_of(called));
  if (found == by_call_.end()) return std::nullopt;
  return found->second.seconds / static_cast<double>(found->second.calls);
}

}  // namespace shard::steptime
