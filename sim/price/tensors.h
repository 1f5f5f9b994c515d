// Sizes of an operator's tensors, and what a kernel's name says of what it moves.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/price/kernel_call.h"

namespace shard::price {

/// Of an element, by PyTorch's name of the type; 0 where that is none.
[[nodiscard]] double element_bytes(std::string_view type);

/// Beyond it a file says nonsense: products of two of them still are numbers.
inline constexpr std::int64_t kMostOfSize = std::int64_t{1} << 31;

[[nodiscard]] double elements(const Tensor& tensor);
[[nodiscard]] double bytes(const Tensor& tensor);
/// Of all tensors together.
[[nodiscard]] double input_bytes(const Operator& op);
/// Of the tensors of one argument.
[[nodiscard]] double argument_bytes(const Operator& op, std::int32_t argument);
[[nodiscard]] double elements_of(const Operator& op, std::int32_t argument);
/// The first tensor of an argument; nullptr: it is none.
[[nodiscard]] const Tensor* tensor_of(const Operator& op, std::int32_t argument);

/// Elements of what the operator makes of its tensors one by one: of the shape that they are broadcast to.
[[nodiscard]] double broadcast_elements(const Operator& op);
/// Of an element of that: the widest floating-point type of those with dimensions, else the widest.
[[nodiscard]] double promoted_bytes(const Operator& op);

/// "[2, 2]", "True", "1" of an argument.
[[nodiscard]] bool is_true(const Operator& op, std::size_t argument);
[[nodiscard]] std::vector<std::int64_t> numbers_of(const Operator& op, std::size_t argument);

/// What a kernel of PyTorch's loops over elements says in its name and grid.
struct Loop {
  double elements = 0;  ///< at most; blocks are not all full
  int tensors = 0;      ///< that are read or written; 0: not said
};
/// None of another kernel.
[[nodiscard]] std::optional<Loop> loop_of(const KernelCall& call);

/// What a kernel over lists of tensors says in its template.
struct ListTemplate {
  int read = 1;  ///< of its lists
};
[[nodiscard]] ListTemplate list_template_of(std::string_view kernel);

[[nodiscard]] inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
/// Any of them.
template <class... Parts>
[[nodiscard]] bool has_any(std::string_view text, Parts... parts) {
  return (has(text, parts) || ...);
}

}  // namespace shard::price
