// What is known of a kernel that somebody launched: its name, its size, and the operator that launched it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shard::price {

/// As PyTorch's profiler tells it. Without a type it is no tensor.
struct Tensor {
  std::vector<std::int64_t> sizes, strides;
  std::string type;           ///< "c10::BFloat16", "float"
  std::int32_t argument = 0;  ///< which argument of the operator it is, or is in the list of
};

/// "aten::add" and what it was called with.
struct Operator {
  std::string name;
  std::vector<Tensor> inputs;       ///< tensors, those of lists each
  std::vector<std::string> values;  ///< by argument, what is no tensor: "True", "[1, 1]"; empty where not known
};

/// What cuBLAS was called with: (m, k) x (k, n), so many times.
struct ProductCall {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  double operand_bytes = 2, result_bytes = 2;  ///< of an element
  bool tensor_cores = true;                    ///< those of TF32 where operands have 4 bytes
};

struct KernelCall {
  std::string_view name;  ///< as the compiler wrote it, or demangled; a library's function whose kernels nobody sees
  std::array<std::int64_t, 3> grid{}, block{};
  const Operator* op = nullptr;        ///< the innermost that has tensors; nullptr: none
  double share = 1;                    ///< of what the operator's kernels of this name do together
  std::optional<ProductCall> product;  ///< where it is one
};

}  // namespace shard::price
