// One value of a model description and where it came from, for printing.
#pragma once

#include <cstdint>
#include <string>

namespace shard::model {

struct ConfigValue {
  enum class Source : std::uint8_t {
    file,           ///< written in the config.json
    default_value,  ///< absent or null there; the default of Hugging Face's class (mlp: ours)
    derived,        ///< absent or null there; computed from other values, as Hugging Face does
  };
  std::string key;    ///< the key's first name, even if the file used an alias
  std::string value;  ///< as JSON text
  Source source{};
};

[[nodiscard]] constexpr const char* to_string(ConfigValue::Source source) {
  switch (source) {
    case ConfigValue::Source::file: return "file";
    case ConfigValue::Source::default_value: return "default";
    case ConfigValue::Source::derived: return "derived";
  }
  return "?";
}

/// A probability above 0 with which a model is to drop values in training, and the keys that say it: "resid_pdrop,
/// embd_pdrop by default".
struct ConfiguredDropout {
  double value = 0;
  std::string keys;

  friend bool operator==(const ConfiguredDropout&, const ConfiguredDropout&) = default;
};

}  // namespace shard::model
