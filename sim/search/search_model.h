// What every chunk search needs of a model: sizes in order, and which module each parameter belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/chunk/next_fit.h"
#include "sim/model/parameters.h"

namespace shard {

/// Sizes in elements. Modules are numbered by first appearance; equal numbers mean equal module names.
struct SearchModel {
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> module;
  std::size_t module_count = 0;
  std::int64_t total = 0;
};

/// Errc::malformed for an empty list, a parameter without elements, or more than kMaxTotalElems elements in all (lists
/// from read_parameter_list never are).
[[nodiscard]] Result<SearchModel> make_search_model(const ParameterList& parameters);

/// The gather working set: the largest sum, over modules, of the sizes of the distinct chunks that one module touches.
/// So much is gathered at once when a module is computed. Chunks are added in order.
class GatherWorkingSet {
 public:
  explicit GatherWorkingSet(const SearchModel& model);
  /// The next chunk: parameters [first, last), `elems` elements.
  void add_chunk(std::size_t first, std::size_t last, std::int64_t elems);
  [[nodiscard]] std::int64_t largest() const { return largest_; }

 private:
  const SearchModel& model_;
  std::size_t chunk_ = 0;
  std::vector<std::size_t> last_chunk_;  ///< per module: 1 + the last chunk that counted for it
  std::vector<std::int64_t> sum_;        ///< per module
  std::int64_t largest_ = 0;
};

/// That of next-fit at one chunk size.
[[nodiscard]] std::int64_t gather_working_set(const SearchModel& model, const NextFit& fit, std::int64_t chunk);

}  // namespace shard
