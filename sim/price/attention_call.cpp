// A row for each operator, as ATen/native/native_functions.yaml and flash_attn/flash_attn_interface.py declare them.
#include "sim/price/attention_call.h"

#include <algorithm>
#include <array>

#include "sim/price/tensors.h"

namespace shard::price {
namespace {

using cluster::AttentionKernel;

struct AttentionRow {
  std::string_view name;
  AttentionKernel kernel;
  std::int32_t query, key;    ///< arguments
  std::int32_t causal;        ///< argument; -1: not said
  bool heads_before_queries;  ///< (batch, heads, queries, size); else (batch, queries, heads, size)
  bool backward;
  double doubt;
};
constexpr std::array<AttentionRow, 14> kAttentionRows{{
    {"aten::_scaled_dot_product_flash_attention_backward", AttentionKernel::flash_2, 1, 2, 11, true, true, 0.2},
    {"aten::_scaled_dot_product_flash_attention", AttentionKernel::flash_2, 0, 1, 4, true, false, 0.2},
    {"aten::_flash_attention_backward", AttentionKernel::flash_2, 1, 2, 11, false, true, 0.2},
    {"aten::_flash_attention_forward", AttentionKernel::flash_2, 0, 1, 8, false, false, 0.2},
    {"aten::_scaled_dot_product_cudnn_attention_backward", AttentionKernel::newest, 1, 2, 14, true, true, 0.25},
    {"aten::_scaled_dot_product_cudnn_attention", AttentionKernel::newest, 0, 1, 6, true, false, 0.25},
    {"aten::_cudnn_attention_backward", AttentionKernel::newest, 1, 2, 14, true, true, 0.25},
    {"aten::_cudnn_attention_forward", AttentionKernel::newest, 0, 1, 10, true, false, 0.25},
    {"aten::_efficient_attention_backward", AttentionKernel::flash_1, 1, 2, 14, false, true, 0.4},
    {"aten::_efficient_attention_forward", AttentionKernel::flash_1, 0, 1, 9, false, false, 0.4},
    {"flash_attn::_flash_attn_backward", AttentionKernel::flash_2, 1, 2, 11, false, true, 0.2},
    {"flash_attn::_flash_attn_forward", AttentionKernel::flash_2, 0, 1, 5, false, false, 0.2},
    {"FlashAttnFuncBackward", AttentionKernel::flash_2, 0, 0, -1, false, true, 0.4},
    {"FlashAttnFunc", AttentionKernel::flash_2, 0, 1, -1, false, false, 0.4},
}};

/// By the operator's argument; of flash attention's kernels their template says it: behind the traits whether numbers
/// are dropped, then whether it is causal.
bool is_causal(const KernelCall& call, const AttentionRow& row) {
  if (row.causal >= 0 && static_cast<std::size_t>(row.causal) < call.op->values.size() &&
      !call.op->values[static_cast<std::size_t>(row.causal)].empty())
    return is_true(*call.op, static_cast<std::size_t>(row.causal));
  const std::size_t traits = call.name.rfind("> >, ");
  if (traits != std::string_view::npos)
    return call.name.substr(traits).starts_with("> >, false, true") ||
           call.name.substr(traits).starts_with("> >, true, true");
  // Mangled: "...EELb0ELb1E...": behind the traits' end, of which none of the flags inside has one.
  constexpr std::string_view kDropout = "EELb";
  constexpr std::size_t kCausal = 8;
  const std::size_t flags = call.name.rfind(kDropout);
  if (flags != std::string_view::npos && flags + kCausal < call.name.size() &&
      call.name.substr(flags + kDropout.size() + 1).starts_with("ELb"))
    return call.name[flags + kCausal] == '1';
  return true;
}

bool is_main_kernel(std::string_view name, bool backward) {
  if (name.starts_with("cudnn")) return true;
  if (has_any(name, "dot_do_o", "convert_dq", "convert_dkv", "elementwise", "seqk_parallel_convert")) return false;
  if (backward) return has_any(name, "bwd", "cutlassB", "AttentionBackward", "dgrad", "sdpa");
  return has_any(name, "fwd", "cutlassF", "AttentionKernel", "fprop", "sdpa");
}

}  // namespace

std::optional<AttentionCall> attention_of(const KernelCall& call) {
  if (call.op == nullptr) return {};
  const auto* const row = std::ranges::find(kAttentionRows, std::string_view(call.op->name), &AttentionRow::name);
  if (row == kAttentionRows.end()) return {};
  const Tensor *const query = tensor_of(*call.op, row->query), *const key = tensor_of(*call.op, row->key);
  if (query == nullptr || key == nullptr || query->sizes.size() != 4 || key->sizes.size() != 4) return {};
  const std::size_t heads = row->heads_before_queries ? 1 : 2, length = row->heads_before_queries ? 2 : 1;
  AttentionCall found{.shape = {}, .kernel = row->kernel, .doubt = row->doubt};
  found.shape = {.batch = query->sizes[0],
                 .heads = query->sizes[heads],
                 .queries = query->sizes[length],
                 .keys = key->sizes[length],
                 .head_size = query->sizes[3],
                 .causal = is_causal(call, *row),
                 .backward = row->backward};
  constexpr std::int64_t kLong = 1024;
  constexpr double kDoubtOfShort = 0.5;  // where the law does not hold
  if (found.shape.queries < kLong) found.doubt = std::max(found.doubt, kDoubtOfShort);
  found.is_main = is_main_kernel(call.name, row->backward);
  return found;
}

}  // namespace shard::price
