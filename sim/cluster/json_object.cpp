// The checks behind every getter.
#include "sim/cluster/json_object.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/model/closest_name.h"

namespace shard::cluster {

JsonObject::JsonObject(const nlohmann::json& json, std::string file, std::string pointer, std::optional<Error>& fault)
    : json_(json), file_(std::move(file)), pointer_(std::move(pointer)), fault_(fault) {
  if (!json_.is_object() && !fault_) {
    fault_ = Error{Errc::malformed, std::string("must be an object, not ") + json_.type_name(), file_ + "#" + pointer_,
                   "write { \"key\": value, ... }"};
  }
}

void JsonObject::fail(std::string_view key, std::string what, std::string help, Errc code) {
  if (fault_) return;
  fault_ = Error{code, std::move(what), file_ + "#" + pointer_ + "/" + std::string(key), std::move(help)};
}

const nlohmann::json* JsonObject::find(std::string_view key, bool required) {
  known_.push_back(key);
  if (!json_.is_object()) return nullptr;
  const auto found = json_.find(key);
  if (found != json_.end()) return &*found;
  if (required) fail(key, "is missing", "add \"" + std::string(key) + "\"");
  return nullptr;
}

double JsonObject::number(std::string_view key) {
  const nlohmann::json* value = find(key, true);
  if (value == nullptr) return 1;
  if (!value->is_number()) {
    fail(key, std::string("must be a number, not ") + value->type_name());
    return 1;
  }
  return value->get<double>();
}

double JsonObject::positive(std::string_view key) {
  const double value = number(key);
  if (std::isfinite(value) && value > 0) return value;
  fail(key, "must be above 0");
  return 1;
}

double JsonObject::non_negative(std::string_view key) {
  const double value = number(key);
  if (std::isfinite(value) && value >= 0) return value;
  fail(key, "must be 0 or more");
  return 0;
}

double JsonObject::share(std::string_view key) {
  const double value = number(key);
  if (value > 0 && value <= 1) return value;
  fail(key, "must be above 0 and at most 1", "it is the reached share of the peak");
  return 1;
}

std::int64_t JsonObject::count(std::string_view key, std::int64_t max, std::optional<std::int64_t> fallback) {
  const nlohmann::json* value = find(key, !fallback);
  if (value == nullptr) return fallback.value_or(1);
  if (value->is_number()) {
    const double d = value->get<double>();  // 8e10 is a whole number too
    if (d >= 1 && d <= static_cast<double>(max) && d == std::floor(d)) return static_cast<std::int64_t>(d);
  }
  fail(key, "must be a whole number from 1 to " + std::to_string(max));
  return 1;
}

bool JsonObject::boolean(std::string_view key, bool fallback) {
  const nlohmann::json* value = find(key, false);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    fail(key, std::string("must be true or false, not ") + value->type_name());
    return fallback;
  }
  return value->get<bool>();
}

std::string JsonObject::text(std::string_view key, std::optional<std::string> fallback) {
  const nlohmann::json* value = find(key, !fallback);
  if (value == nullptr) return fallback.value_or("");
  if (!value->is_string()) {
    fail(key, std::string("must be a text, not ") + value->type_name());
    return "";
  }
  return value->get<std::string>();
}

bool JsonObject::has(std::string_view key) {
  return find(key, false) != nullptr;
}

JsonObject JsonObject::object(std::string_view key) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const nlohmann::json* value = find(key, true);
  return JsonObject(value == nullptr ? kEmpty : *value, file_, pointer_ + "/" + std::string(key), fault_);
}

std::vector<JsonObject> JsonObject::objects(std::string_view key, std::size_t most) {
  std::vector<JsonObject> all;
  const nlohmann::json* value = find(key, true);
  if (value == nullptr) return all;
  if (!value->is_array() || value->size() > most) {
    fail(key, "must be a list of at most " + std::to_string(most) + " objects");
    return all;
  }
  const std::string list = pointer_ + "/" + std::string(key) + "/";
  for (std::size_t i = 0; i < value->size(); ++i)
    all.emplace_back((*value)[i], file_, list + std::to_string(i), fault_);
  return all;
}

void JsonObject::refuse_unknown_keys() {
  if (!json_.is_object()) return;
  for (const auto& item : json_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) != known_.end()) continue;
    std::string pointer;  // RFC 6901
    for (char c : item.key()) pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    fail(pointer, "is not a known key", model::did_you_mean(item.key(), known_));
  }
}

}  // namespace shard::cluster
