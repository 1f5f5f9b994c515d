// Typed reading of a JSON object's fields with defaults, provenance, and errors that point at the field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/config_value.h"
#include "traces/base/result.h"

namespace shard::model {

/// Names of one field, the main one first. A file may use any; two that disagree are an error.
class Keys {
 public:
  Keys(std::initializer_list<std::string_view> keys) : keys_(keys.begin(), keys.size()) {}
  explicit Keys(std::span<const std::string_view> keys) : keys_(keys) {}
  [[nodiscard]] auto begin() const { return keys_.begin(); }
  [[nodiscard]] auto end() const { return keys_.end(); }

 private:
  std::span<const std::string_view> keys_;  ///< of the caller's expression
};

/// The first fault is kept and every getter then returns its default, so a family reads all its fields in a row and
/// asks for error() once. null counts as absent where a default exists. Errors' `where` is "FILE#/KEY".
class ConfigFields {
 public:
  /// No dimension, count or factor above this is taken: products of two then fit in 63 bits.
  static constexpr std::int64_t kMaxDimension = std::int64_t{1} << 31;

  /// Both must outlive this object; `object` is a JSON object.
  ConfigFields(const nlohmann::json& object, std::string_view file) : object_(object), file_(file) {}

  /// An integer in 1..kMaxDimension. Without a default the field is required.
  std::int64_t positive(Keys keys, std::optional<std::int64_t> fallback);
  /// The same; when absent, the value that was computed from other fields.
  std::int64_t positive_or_derived(Keys keys, std::int64_t derived);
  /// The same, where 0 is a value.
  std::int64_t count(Keys keys, std::int64_t fallback);
  bool boolean(Keys keys, bool fallback);
  /// A finite number greater than 0 that single precision can hold.
  double positive_number(Keys keys, double fallback);
  /// A finite number, at least 0.
  double non_negative_number(Keys keys, double fallback);
  std::string text(Keys keys, std::string_view fallback);
  /// A list of at least `at_least` integers in 1..kMaxDimension; required.
  std::vector<std::int64_t> positive_list(Keys keys, std::size_t at_least);
  /// A list of integers in 0..kMaxDimension, empty where it is absent.
  std::vector<std::int64_t> list(Keys keys);
  /// It is there and null.
  [[nodiscard]] bool is_null(Keys keys) const;
  /// The field itself if it is there and not null.
  [[nodiscard]] const nlohmann::json* find(Keys keys);
  /// Marks keys as known without reading them.
  void ignore(Keys keys);

  /// A probability in 0..1, collected for dropouts().
  void dropout(std::string_view key, double fallback);
  /// One of each probability above 0, in the order in which they were read.
  [[nodiscard]] std::vector<ConfiguredDropout> dropouts() const;

  /// For a format of our own: a key that nobody asked for is a fault.
  void refuse_unknown_keys();
  /// For a format with many keys that do not matter here: a line for each unknown key that resembles a known one.
  [[nodiscard]] std::vector<std::string> misspelling_notes() const;

  /// Records a fault at `key` unless there is one already. `key` is a JSON pointer without its first slash.
  void fail(Errc code, std::string_view key, std::string what, std::string help = {});
  void malformed(std::string_view key, std::string what, std::string help = {}) {
    fail(Errc::malformed, key, std::move(what), std::move(help));
  }
  void contradiction(std::string_view key, std::string what, std::string help = {}) {
    fail(Errc::contradiction, key, std::move(what), std::move(help));
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  [[nodiscard]] const std::vector<ConfigValue>& values() const { return values_; }

  /// "FILE#/KEY", as errors have it.
  [[nodiscard]] std::string where(std::string_view key) const { return file_ + "#/" + prefix_ + std::string(key); }
  /// A value for a message, shortened.
  [[nodiscard]] static std::string shown(const nlohmann::json& value);

  /// Reads the fields of an object inside this one; give it back with absorb().
  [[nodiscard]] ConfigFields nested(std::string_view key, const nlohmann::json& object) const;
  /// Takes over the values and the fault of a nested object.
  void absorb(ConfigFields inside);

 private:
  struct Dropout {
    std::string key;
    double value;
    bool from_file;
  };
  [[nodiscard]] std::vector<std::string> unknown_keys() const;
  void note(Keys keys, std::string value, ConfigValue::Source source);
  [[nodiscard]] std::optional<std::int64_t> read_positive(std::string_view pointer, const nlohmann::json& json,
                                                          std::int64_t least = 1);
  [[nodiscard]] std::string_view used_key(Keys keys) const;
  double number(Keys keys, double fallback, bool zero_allowed);

  const nlohmann::json& object_;
  std::string file_;
  std::string prefix_;  ///< JSON pointer of the object, ending in a slash, or empty
  std::optional<Error> error_;
  std::vector<ConfigValue> values_;
  std::vector<Dropout> dropouts_;
  std::vector<std::string_view> known_;
};

}  // namespace shard::model
