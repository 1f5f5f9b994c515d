// Asks the tables of fields and of frameworks.
#include "sim/commands/option_owners.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "sim/commands/scaler_options.h"
#include "sim/like/frameworks/option_fields.h"
#include "sim/strategy/fields.h"

namespace shard::commands {
namespace {

/// Options of our own executor beside the fields of strategies; others may have them too.
constexpr std::string_view kOwnBeside[] = {"host-capacity", "disk-path", "chunk-bytes", "steps"};
/// Options of other frameworks beside those of the table of programs'.
constexpr std::string_view kOthersBeside[] = {
    "allocator-conf",     "memory-fraction",    "parameters", "shard-param-frac",
    "offload-optim-frac", "offload-param-frac", "rank"};

bool is_own(std::string_view option) {
  const std::vector<std::string_view> scaler = scaler_option_names();
  return plan::find_field(option) != nullptr || std::ranges::find(kOwnBeside, option) != std::end(kOwnBeside) ||
         std::ranges::find(scaler, option) != scaler.end() || option == "trace";
}

bool is_of_others(std::string_view option) {
  return std::ranges::find(kOthersBeside, option) != std::end(kOthersBeside) ||
         std::ranges::find(like::option_fields(), option, &like::OptionField::option) != like::option_fields().end();
}

}  // namespace

bool has_meaning_for(const like::Framework* framework, std::string_view option) {
  if (framework == nullptr) return is_own(option) || !is_of_others(option);
  return framework->takes(option) || (!is_own(option) && !is_of_others(option));
}

}  // namespace shard::commands
