// By the shapes of the two tensors that are multiplied.
#include "sim/price/product_call.h"

#include <algorithm>
#include <array>

#include "sim/price/tensors.h"

namespace shard::price {
namespace {

struct ProductRow {
  std::string_view name;
  std::int32_t first, second;
};
constexpr std::array<ProductRow, 11> kProductRows{{{"aten::mm", 0, 1},
                                                   {"aten::mm_out", 0, 1},
                                                   {"aten::addmm", 1, 2},
                                                   {"aten::addmm_", 1, 2},
                                                   {"aten::bmm", 0, 1},
                                                   {"aten::baddbmm", 1, 2},
                                                   {"aten::baddbmm_", 1, 2},
                                                   {"aten::_scaled_mm", 0, 1},
                                                   {"aten::_addmm_activation", 1, 2},
                                                   {"aten::_int_mm", 0, 1},
                                                   {"aten::linear", 0, 1}}};

bool multiplies(std::string_view kernel) {
  return has_any(kernel, "gemm", "Gemm", "gemv", "cutlass", "xmma", "nvjet", "dot_kernel", "cublas", "splitK") &&
         !has(kernel, "elementwise");
}

}  // namespace

std::optional<ProductCall> product_of(const KernelCall& call) {
  if (call.product) return call.product;
  if (call.op == nullptr || !multiplies(call.name)) return {};
  const auto* const row = std::ranges::find(kProductRows, std::string_view(call.op->name), &ProductRow::name);
  if (row == kProductRows.end() || has_any(call.name, "splitKreduce", "splitk_reduce")) return {};
  const Tensor *const first = tensor_of(*call.op, row->first), *const second = tensor_of(*call.op, row->second);
  if (first == nullptr || second == nullptr || first->sizes.size() < 2 || second->sizes.size() < 2) return {};
  const bool linear = call.op->name == "aten::linear";
  ProductCall found;
  found.k = first->sizes.back();
  found.n = linear ? second->sizes.front() : second->sizes.back();
  const bool batched = !linear && first->sizes.size() == 3;
  found.m =
      batched
          ? first->sizes[1]
          : static_cast<std::int64_t>(std::min(elements(*first) / std::max(1.0, static_cast<double>(found.k)), 1e18));
  found.batch = batched ? first->sizes[0] : 1;
  for (std::int64_t* const size : {&found.m, &found.n, &found.k, &found.batch}) *size = std::min(*size, kMostOfSize);
  found.operand_bytes = element_bytes(first->type);
  if (found.operand_bytes <= 0 || found.m * found.n == 0 || found.k * found.batch == 0) return {};
  found.result_bytes = std::max(found.operand_bytes, 2.0);
  // In fp32 the kernel says whether tensor cores computed.
  found.tensor_cores = found.operand_bytes <= 2 || has_any(call.name, "tf32", "1688", "s16816", "tensorop");
  return found;
}

}  // namespace shard::price
