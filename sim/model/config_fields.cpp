// Checks of one field each; every message shows the value that was found.
#include "sim/model/config_fields.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/model/closest_name.h"

namespace shard::model {
namespace {

/// The value as JSON, shortened; invalid UTF-8 is replaced rather than thrown at.
std::string show(const nlohmann::json& json) {
  constexpr std::size_t kLongest = 60;
  std::string text = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

/// A key as a step of a JSON pointer (RFC 6901: "~" and "/" are escaped).
std::string pointer_step(std::string_view key) {
  std::string text;
  for (char c : key) {
    if (c == '~')
      text += "~0";
    else if (c == '/')
      text += "~1";
    else
      text += c;
  }
  return text;
}

/// The shortest text of a number: 0.1, not 0.10000000000000001.
std::string show_number(double value) {
  return nlohmann::json(value).dump();
}

}  // namespace

std::string ConfigFields::shown(const nlohmann::json& value) {
  return show(value);
}

void ConfigFields::fail(Errc code, std::string_view key, std::string what, std::string help) {
  if (!error_) error_ = Error{code, std::move(what), where(key), std::move(help)};
}

ConfigFields ConfigFields::nested(std::string_view key, const nlohmann::json& object) const {
  ConfigFields inside(object, file_);
  inside.prefix_ = prefix_ + std::string(key) + "/";
  return inside;
}

void ConfigFields::absorb(ConfigFields inside) {
  if (!error_) error_ = std::move(inside.error_);
  values_.insert(values_.end(), inside.values_.begin(), inside.values_.end());
}

void ConfigFields::note(Keys keys, std::string value, ConfigValue::Source source) {
  values_.push_back({std::string(*keys.begin()), std::move(value), source});
}

void ConfigFields::ignore(Keys keys) {
  known_.insert(known_.end(), keys.begin(), keys.end());
}

const nlohmann::json* ConfigFields::find(Keys keys) {
  ignore(keys);
  const nlohmann::json* found = nullptr;
  std::string_view found_key;
  for (std::string_view key : keys) {
    const auto it = object_.find(key);
    if (it == object_.end() || it->is_null()) continue;
    if (found != nullptr && *found != *it) {
      contradiction(key, "is " + show(*it) + ", but its other name '" + std::string(found_key) + "' is " + show(*found),
                    "keep only one of the two");
      return nullptr;
    }
    if (found == nullptr) {
      found = &*it;
      found_key = key;
    }
  }
  return found;
}

std::string_view ConfigFields::used_key(Keys keys) const {
  for (std::string_view key : keys) {
    const auto it = object_.find(key);
    if (it != object_.end() && !it->is_null()) return key;
  }
  return *keys.begin();
}

std::optional<std::int64_t> ConfigFields::read_positive(std::string_view pointer, const nlohmann::json& json,
                                                        std::int64_t least) {
  // Integers beyond 64 bits arrive as floating point; they are too large, not fractional.
  if (json.is_number_unsigned() && json.get<std::uint64_t>() >= static_cast<std::uint64_t>(least) &&
      json.get<std::uint64_t>() <= std::uint64_t{kMaxDimension}) {
    return static_cast<std::int64_t>(json.get<std::uint64_t>());
  }
  const bool too_large = json.is_number() && json.get<double>() > static_cast<double>(kMaxDimension);
  if (too_large) {
    contradiction(pointer,
                  "is " + show(json) + ", more than the largest supported value " + std::to_string(kMaxDimension));
  } else {
    malformed(pointer,
              "is " + show(json) + ", not a " + (least > 0 ? "positive integer" : "whole number of at least 0"));
  }
  return std::nullopt;
}

std::int64_t ConfigFields::positive(Keys keys, std::optional<std::int64_t> fallback) {
  const nlohmann::json* json = find(keys);
  if (json == nullptr) {
    if (!fallback) {
      malformed(*keys.begin(), "is missing; without it the model's shape is unknown",
                "add \"" + std::string(*keys.begin()) + "\"");
      return 1;
    }
    note(keys, std::to_string(*fallback), ConfigValue::Source::default_value);
    return *fallback;
  }
  const std::int64_t value = read_positive(used_key(keys), *json).value_or(1);
  note(keys, std::to_string(value), ConfigValue::Source::file);
  return value;
}

std::int64_t ConfigFields::positive_or_derived(Keys keys, std::int64_t derived) {
  if (find(keys) != nullptr) return positive(keys, std::nullopt);
  note(keys, std::to_string(derived), ConfigValue::Source::derived);
  return derived;
}

std::int64_t ConfigFields::count(Keys keys, std::int64_t fallback) {
  const nlohmann::json* json = find(keys);
  const std::int64_t value = json == nullptr ? fallback : read_positive(used_key(keys), *json, 0).value_or(0);
  note(keys, std::to_string(value), json == nullptr ? ConfigValue::Source::default_value : ConfigValue::Source::file);
  return value;
}

bool ConfigFields::is_null(Keys keys) const {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
    const auto it = object_.find(key);
    return it != object_.end() && it->is_null();
  });
}

bool ConfigFields::boolean(Keys keys, bool fallback) {
  const nlohmann::json* json = find(keys);
  if (json != nullptr && !json->is_boolean()) {
    malformed(used_key(keys), "is " + show(*json) + ", neither true nor false");
    return fallback;
  }
  const bool value = json == nullptr ? fallback : json->get<bool>();
  note(keys, value ? "true" : "false",
       json == nullptr ? ConfigValue::Source::default_value : ConfigValue::Source::file);
  return value;
}

double ConfigFields::number(Keys keys, double fallback, bool zero_allowed) {
  const nlohmann::json* json = find(keys);
  if (json == nullptr) {
    note(keys, show_number(fallback), ConfigValue::Source::default_value);
    return fallback;
  }
  const double value = json->is_number() ? json->get<double>() : -1.0;
  const auto single = static_cast<float>(value);
  // Checked in single precision, in which it will be used: 1e-60 would be 0 there.
  if (!json->is_number() || !std::isfinite(value) || !std::isfinite(single) ||
      (zero_allowed ? value < 0 : !(single > 0))) {
    malformed(used_key(keys),
              "is " + show(*json) + ", not a " + (zero_allowed ? "number of at least 0" : "number greater than 0"));
    return fallback;
  }
  note(keys, show_number(value), ConfigValue::Source::file);
  return value;
}

double ConfigFields::positive_number(Keys keys, double fallback) {
  return number(keys, fallback, false);
}

double ConfigFields::non_negative_number(Keys keys, double fallback) {
  return number(keys, fallback, true);
}

std::string ConfigFields::text(Keys keys, std::string_view fallback) {
  const nlohmann::json* json = find(keys);
  if (json != nullptr && !json->is_string()) {
    malformed(used_key(keys), "is " + show(*json) + ", not a string");
    return std::string(fallback);
  }
  std::string value = json == nullptr ? std::string(fallback) : json->get<std::string>();
  note(keys, show(nlohmann::json(value)),
       json == nullptr ? ConfigValue::Source::default_value : ConfigValue::Source::file);
  return value;
}

std::vector<std::int64_t> ConfigFields::positive_list(Keys keys, std::size_t at_least) {
  const nlohmann::json* json = find(keys);
  const std::string key{used_key(keys)};
  std::vector<std::int64_t> list;
  if (json == nullptr) {
    malformed(key, "is missing; without it the model's shape is unknown", "add \"" + key + "\"");
  } else if (!json->is_array() || json->size() < at_least) {
    malformed(key, "is " + show(*json) + ", not a list of at least " + std::to_string(at_least) + " positive integers");
  } else {
    for (std::size_t i = 0; i < json->size(); ++i) {
      const auto item = read_positive(key + "/" + std::to_string(i), (*json)[i]);
      if (!item) return list;
      list.push_back(*item);
    }
    note(keys, show(*json), ConfigValue::Source::file);
  }
  return list;
}

std::vector<std::int64_t> ConfigFields::list(Keys keys) {
  const nlohmann::json* json = find(keys);
  std::vector<std::int64_t> list;
  if (json == nullptr) return list;
  const std::string key{used_key(keys)};
  if (!json->is_array()) malformed(key, "is " + show(*json) + ", not a list");
  for (std::size_t i = 0; json->is_array() && i < json->size(); ++i) {
    const auto item = read_positive(key + "/" + std::to_string(i), (*json)[i], 0);
    if (!item) break;
    list.push_back(*item);
  }
  note(keys, show(*json), ConfigValue::Source::file);
  return list;
}

void ConfigFields::dropout(std::string_view key, double fallback) {
  const bool from_file = find({key}) != nullptr;
  const double value = non_negative_number({key}, fallback);
  if (value > 1) malformed(key, "is " + show_number(value) + ", not a probability", "use a number from 0 to 1");
  dropouts_.push_back({std::string(key), value, from_file});
}

std::vector<ConfiguredDropout> ConfigFields::dropouts() const {
  std::vector<ConfiguredDropout> list;
  for (const Dropout& each : dropouts_) {
    if (each.value == 0) continue;
    auto same = std::ranges::find(list, each.value, &ConfiguredDropout::value);
    if (same == list.end()) same = list.insert(same, {.value = each.value, .keys = ""});
    same->keys += (same->keys.empty() ? "" : ", ") + each.key + (each.from_file ? "" : " by default");
  }
  return list;
}

std::vector<std::string> ConfigFields::unknown_keys() const {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) unknown.push_back(key);
  }
  return unknown;
}

void ConfigFields::refuse_unknown_keys() {
  for (const std::string& key : unknown_keys()) {
    malformed(pointer_step(key), "is not a key of this kind of model", did_you_mean(key, known_));
  }
}

std::vector<std::string> ConfigFields::misspelling_notes() const {
  std::vector<std::string> notes;
  for (const std::string& key : unknown_keys()) {
    const std::string hint = did_you_mean(key, known_);
    if (!hint.empty()) notes.push_back("key '" + key + "' is not read; " + hint);
  }
  return notes;
}

}  // namespace shard::model
