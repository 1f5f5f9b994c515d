// The messages of the shared checks.
#include "sim/model/model_limits.h"

#include <string>

namespace shard::model {

void check_layers(ConfigFields& fields, std::string_view key, std::int64_t layers) {
  if (layers <= kMaxLayers) return;
  fields.contradiction(
      key, "asks for " + std::to_string(layers) + " layers; at most " + std::to_string(kMaxLayers) + " are supported");
}

void check_heads_divide_hidden(ConfigFields& fields, NamedSize heads, NamedSize hidden) {
  if (hidden.size % heads.size == 0) return;
  std::int64_t divisor = heads.size < hidden.size ? heads.size : hidden.size;
  // Heads are few in any real model; a hostile count must not cost a long search for a suggestion.
  constexpr std::int64_t kLongestSearch = 4096;
  const bool suggest = divisor <= kLongestSearch;
  while (suggest && hidden.size % divisor != 0) --divisor;
  fields.contradiction(
      heads.key,
      "is " + std::to_string(heads.size) + ", which does not divide " + std::string(hidden.key) + " " +
          std::to_string(hidden.size),
      suggest ? "set \"" + std::string(heads.key) + "\" to " + std::to_string(divisor) : std::string{});
}

void check_total(ConfigFields& fields, const ParameterBuilder& parameters) {
  if (!parameters.too_large() || parameters.too_many()) return;
  fields.contradiction("", "these sizes make a model of more than 2^53 parameters, which is not supported");
}

}  // namespace shard::model
