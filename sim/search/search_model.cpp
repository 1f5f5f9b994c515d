// Numbers the modules and adds up what each of them gathers.
#include "sim/search/search_model.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace shard {

Result<SearchModel> make_search_model(const ParameterList& parameters) {
  if (parameters.empty()) return Error{Errc::malformed, "there are no parameters to put into chunks", "", ""};
  SearchModel model;
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (const Parameter& parameter : parameters) {
    const std::int64_t size = parameter.elems.count();
    if (size < 1 || size > kMaxTotalElems.count() - model.total) {
      return Error{Errc::malformed, "parameter '" + parameter.name + "' has " + std::to_string(size) + " elements", "",
                   "every parameter has at least 1 element and all together at most 2^60"};
    }
    model.total += size;
    model.sizes.push_back(size);
    model.module.push_back(numbers.emplace(module_name(parameter.name), numbers.size()).first->second);
  }
  model.module_count = numbers.size();
  return model;
}

GatherWorkingSet::GatherWorkingSet(const SearchModel& model)
    : model_(model), last_chunk_(model.module_count, 0), sum_(model.module_count, 0) {}

void GatherWorkingSet::add_chunk(std::size_t first, std::size_t last, std::int64_t elems) {
  ++chunk_;
  for (std::size_t index = first; index < last; ++index) {
    const std::size_t module = model_.module[index];
    if (last_chunk_[module] == chunk_) continue;
    last_chunk_[module] = chunk_;
    sum_[module] += elems;
    largest_ = std::max(largest_, sum_[module]);
  }
}

std::int64_t gather_working_set(const SearchModel& model, const NextFit& fit, std::int64_t chunk) {
  GatherWorkingSet working_set(model);
  fit.for_each_chunk(chunk, [&](std::size_t first, std::size_t last, std::int64_t elems) {
    working_set.add_chunk(first, last, elems);
  });
  return working_set.largest();
}

}  // namespace shard
