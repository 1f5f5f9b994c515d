// Bounds by the widest row that a family's graph has.
#include "sim/model/graph_limits.h"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace shard::model {
namespace {

/// Of the values that products with the parameters make: no row is wider than a parameter without its shortest axis, as
/// tokens go to no more experts than there are.
std::int64_t widest_product(const Model& model) {
  std::int64_t widest = 1;
  for (const Parameter& parameter : model.parameters)
    if (!parameter.shape.empty())
      widest = std::max(widest, parameter.elems.count() / *std::ranges::min_element(parameter.shape));
  return widest;
}

std::int64_t widest_row(const Model& model) {
  if (model.family == Family::other) return std::max(model.heads * model.head_dim, widest_product(model));
  return std::max({std::int64_t{1}, model.vocabulary, model.hidden * (model.family == Family::gpt2 ? 3 : 1),
                   model.intermediate, model.heads * model.head_dim, model.kv_heads * model.head_dim});
}

}  // namespace

Result<void> check_batch(const Model& model, std::int64_t batch, std::int64_t sequence) {
  if (batch < 1) {
    return Error{Errc::contradiction, "is " + std::to_string(batch) + "; a micro-batch holds at least 1",
                 "--micro-batch", "use 1 or more"};
  }
  if (sequence < 1) {
    return Error{Errc::contradiction, "is " + std::to_string(sequence) + "; a sequence holds at least 1 token",
                 "--sequence", "use 1 or more"};
  }
  if (model.max_sequence > 0 && sequence > model.max_sequence) {
    return Error{Errc::contradiction,
                 "is " + std::to_string(sequence) + ", more than the longest sequence of " + model.name + ", " +
                     std::to_string(model.max_sequence),
                 "--sequence", "use at most " + std::to_string(model.max_sequence)};
  }
  const std::int64_t most_rows = std::max<std::int64_t>(1, kMaxValueElements / widest_row(model));
  if (batch > most_rows / sequence) {
    return Error{Errc::contradiction,
                 std::to_string(batch) + " sequences of " + std::to_string(sequence) +
                     " make tensors of more than 2^48 elements, which is not supported",
                 "--micro-batch", "use at most " + std::to_string(std::max<std::int64_t>(1, most_rows / sequence))};
  }
  return {};
}

Result<void> check_trained(const Model& model, std::int64_t sequence) {
  if (model.not_trained) return *model.not_trained;
  if (model.window == 0 || sequence <= model.window) return {};
  return Error{Errc::contradiction,
               "is " + std::to_string(sequence) + ", and attention of " + model.name + " looks back on " +
                   std::to_string(model.window) +
                   " tokens: longer sequences are predicted as attention to all of them, and not trained, as attention "
                   "within a sliding window is missing",
               "--sequence", "use at most " + std::to_string(model.window)};
}

}  // namespace shard::model
