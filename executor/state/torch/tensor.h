// A tensor as torch.save describes it: a view of a storage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/state/torch/archive.h"
#include "traces/base/result.h"

namespace shard::torch {

/// Of a tensor, and of all tensors of a checkpoint: sizes beyond that are damage.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

struct Tensor {
  std::string storage;     ///< its key
  std::string dtype;       ///< safetensors' word: "F32"
  std::int64_t first = 0;  ///< element of the storage
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in elements
  std::int64_t elements = 0;          ///< product of the shape, 1 for a scalar
  bool contiguous = true;
};

/// The calls that make plain tensors (torch._utils._rebuild_tensor_v2, _v3, _rebuild_parameter, and
/// torch._tensor._rebuild_from_type_v2 of torch.Tensor); parameters are their data. Nothing where the value is no
/// object. Errors: contradiction with the name of any other callable, which code would have to make; malformed: a view
/// that its storage does not hold. `what` names the value in errors.
[[nodiscard]] Result<std::optional<Tensor>> tensor_of(Archive& archive, Value value, std::string_view what);

/// Are elements of that type widened to fp32 without loss: F32, BF16, F16.
[[nodiscard]] bool is_read_as_f32(std::string_view dtype);
/// Elements in the order of the shape from number `first` on. Errors: Archive::read's. Only of types above.
[[nodiscard]] Result<void> read_elements(Archive& archive, const Tensor& tensor, std::int64_t first,
                                         std::span<float> values);

/// A number, or a tensor of one element (F32, F64, I32, I64) with a whole value. Nothing for anything else.
[[nodiscard]] std::optional<std::int64_t> count_of(Archive& archive, Value value);

/// Of a dict or an OrderedDict, or what an object's state has under that name; nothing where there is none.
[[nodiscard]] std::optional<Value> member(const Pickle& pickle, Value of, std::string_view name);
/// Keys and values in turn of a dict or an OrderedDict; empty for anything else.
[[nodiscard]] std::span<const Value> pairs(const Pickle& pickle, Value of);
/// Items of a list, tuple or torch.Size.
[[nodiscard]] std::span<const Value> list_items(const Pickle& pickle, Value of);
/// Numbers of a list, tuple or torch.Size, none below 0; nothing for anything else.
[[nodiscard]] std::optional<std::vector<std::int64_t>> sizes_of(const Pickle& pickle, Value of);
/// For errors: "an object of X", "a dict".
[[nodiscard]] std::string kind_text(const Pickle& pickle, Value value);

}  // namespace shard::torch
