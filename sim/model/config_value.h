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

}  // namespace shard::model
