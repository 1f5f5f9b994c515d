// Walks over strings; what stands between them is looked at.
#include "sim/model/python_json.h"

#include <array>

namespace shard::model {

std::string without_infinities(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNumbers{"NaN", "Infinity", "-Infinity"};
  std::string out;
  out.reserve(text.size());
  bool within_string = false;
  for (std::size_t at = 0; at < text.size();) {
    std::string_view number;
    for (const std::string_view each : kNumbers)
      if (!within_string && text.substr(at).starts_with(each)) number = each;
    if (!number.empty()) {
      out += "null";
      at += number.size();
      continue;
    }
    if (within_string && text[at] == '\\' && at + 1 < text.size())
      out += text[at++];
    else if (text[at] == '"')
      within_string = !within_string;
    out += text[at++];
  }
  return out;
}

}  // namespace shard::model
