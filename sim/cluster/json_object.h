// Strict reading of one JSON object: every key is asked for, typed, in range, and errors point at it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::cluster {

/// The first fault of an object and its inner objects is kept in `fault`; getters then return a harmless value, so that
/// a reader asks once, at the end.
class JsonObject {
 public:
  /// All three must outlive this. `pointer` is this object's JSON pointer, "" for the root.
  JsonObject(const nlohmann::json& json, std::string file, std::string pointer, std::optional<Error>& fault);

  /// A finite number above 0.
  double positive(std::string_view key);
  /// A finite number, 0 or more.
  double non_negative(std::string_view key);
  /// A number above 0 and at most 1.
  double share(std::string_view key);
  /// A whole number in 1..max; `fallback` where the key is absent, required without one.
  std::int64_t count(std::string_view key, std::int64_t max, std::optional<std::int64_t> fallback = std::nullopt);
  bool boolean(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::optional<std::string> fallback = std::nullopt);
  [[nodiscard]] bool has(std::string_view key);
  /// An inner object; required.
  JsonObject object(std::string_view key);
  /// The objects of a list of at most `most`; required.
  std::vector<JsonObject> objects(std::string_view key, std::size_t most);

  void fail(std::string_view key, std::string what, std::string help = {}, Errc code = Errc::malformed);
  /// A key that nobody asked for is a fault: most likely a misspelling.
  void refuse_unknown_keys();

 private:
  const nlohmann::json* find(std::string_view key, bool required);
  double number(std::string_view key);

  const nlohmann::json& json_;
  std::string file_;
  std::string pointer_;
  std::optional<Error>& fault_;
  std::vector<std::string_view> known_;
};

}  // namespace shard::cluster
