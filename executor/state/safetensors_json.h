// JSON as safetensors has it: objects of objects, read as events, so that no document of a hostile header is made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/base/result.h"

namespace shard::safetensors {

/// A value's kind, and its text where it is a string or a whole number of at least 0.
struct JsonEvent {
  enum class Kind : unsigned char { begin_object, end_object, begin_list, end_list, key, text, number, other } kind{};
  std::string text{};      ///< of keys and texts
  std::uint64_t number{};  ///< of numbers: whole ones of at least 0; every other value is `other`
};

/// Takes events in order; false ends the reading.
class JsonListener {
 public:
  virtual ~JsonListener() = default;
  [[nodiscard]] virtual bool take(JsonEvent event) = 0;
};

/// Reads all of `text`. Errors: malformed where it is not one JSON object in UTF-8, or nests deeper than 32. Nothing
/// where the listener ended it: it knows why.
[[nodiscard]] Result<void> read_json(std::string_view text, std::string_view where, JsonListener& listener);

}  // namespace shard::safetensors
