// Ranges are named by torch/csrc/profiler/util.cpp, getNvtxStr.
#include <algorithm>
#include <array>
#include <charconv>

#include "traces/import/nsys_program.h"

namespace shard::import {
namespace {

constexpr std::size_t kMostTensors = 4096, kMostDimensions = 64;

/// "[[2, 3], [], [4]]": what is no tensor, or has no dimensions, is an empty list. False where it is something else.
bool read_sizes(std::string_view text, std::vector<Operand>& to) {
  if (!text.starts_with('[')) return false;
  text.remove_prefix(1);
  std::int32_t argument = 0;
  for (bool open = false;;) {
    if (text.empty()) return false;
    const char c = text.front();
    if (c >= '0' && c <= '9') {
      std::int64_t size = 0;
      const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (!open || fault != std::errc() || to.back().sizes.size() >= kMostDimensions) return false;
      to.back().sizes.push_back(size);
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      continue;
    }
    text.remove_prefix(1);
    if (c == '[') {
      if (open || to.size() >= kMostTensors) return false;
      to.push_back({.sizes = {}, .strides = {}, .type = "", .argument = argument++});
      open = true;
    } else if (c == ']') {
      if (!open) return true;
      open = false;
    } else if (c != ',' && c != ' ') {
      return false;
    }
  }
}

}  // namespace

std::optional<KinetoOperator> operator_of_range(std::string_view text) {
  constexpr std::string_view kSizes = ", sizes = ";
  constexpr std::array<std::string_view, 4> kSaid = {", seq = ", ", op_id = ", kSizes, ", input_op_ids = "};
  const std::string_view name = text.substr(0, text.find(", "));
  const std::string_view rest = text.substr(name.size());
  // A program's own ranges have commas, too.
  const bool is_operator = rest.empty() ? name.find("::") != std::string_view::npos
                                        : std::ranges::any_of(kSaid, [&](auto said) { return rest.starts_with(said); });
  if (name.empty() || !is_operator) return {};
  KinetoOperator made;
  made.name = name;
  const std::size_t at = text.find(kSizes);
  if (at != std::string_view::npos && !read_sizes(text.substr(at + kSizes.size()), made.inputs)) return {};
  std::erase_if(made.inputs, [](const Operand& each) { return each.sizes.empty(); });
  return made;
}

}  // namespace shard::import
