// Greedy, as huggingface_hub's split_torch_state_dict_into_shards: a file takes tensors until the next does not fit.
#include "executor/state/checkpoint/layout.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "executor/state/safetensors.h"

namespace shard::checkpoint {
namespace {

std::int64_t layout_elements(const TensorSpec& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= size;
  return elements;
}

std::string layout_file_name(const char* stem, std::size_t number, std::size_t count) {
  if (count == 1) return std::string(stem) + ".safetensors";
  char digits[64];
  std::snprintf(digits, sizeof digits, "-%05zu-of-%05zu.safetensors", number, count);
  return stem + std::string(digits);
}

/// Adds the files of one kind of tensors; returns the bytes of the tensors.
std::int64_t layout_add(Layout& layout, std::span<const TensorSpec> tensors, const char* stem, std::int64_t largest) {
  std::vector<std::vector<safetensors::Tensor>> files;
  std::int64_t total = 0;
  for (const TensorSpec& spec : tensors) {
    const std::int64_t elements = layout_elements(spec);
    const std::int64_t bytes = elements * safetensors::bits_of(spec.dtype) / 8;
    if (files.empty() || files.back().back().end + bytes > largest) files.emplace_back();
    const std::int64_t at = files.back().empty() ? 0 : files.back().back().end;
    files.back().push_back({.name = spec.name,
                            .dtype = spec.dtype,
                            .shape = spec.shape,
                            .elements = elements,
                            .begin = at,
                            .end = at + bytes});
    total += bytes;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string header = safetensors::write_header(files[i]);
    const auto prefix = safetensors::write_prefix(static_cast<std::int64_t>(header.size()));
    Layout::File file{.name = layout_file_name(stem, i + 1, files.size()),
                      .head = std::string(reinterpret_cast<const char*>(prefix.data()), prefix.size()) + header};
    const auto data = static_cast<std::int64_t>(file.head.size());
    for (const safetensors::Tensor& t : files[i])
      layout.places.push_back(
          {.file = static_cast<std::int32_t>(layout.files.size()), .offset = data + t.begin, .bytes = t.end - t.begin});
    file.bytes = data + files[i].back().end;
    layout.bytes += file.bytes;
    layout.files.push_back(std::move(file));
  }
  layout.tensors.insert(layout.tensors.end(), tensors.begin(), tensors.end());
  return total;
}

}  // namespace

Layout lay_out(std::span<const TensorSpec> weights, std::span<const TensorSpec> state, std::int64_t largest_file) {
  Layout layout;
  const std::int64_t total = layout_add(layout, weights, kWeightsStem, largest_file);
  if (layout.files.size() > 1) {
    nlohmann::json index;
    index["metadata"]["total_size"] = total;
    for (std::size_t i = 0; i < weights.size(); ++i)
      index["weight_map"][weights[i].name] = layout.files[static_cast<std::size_t>(layout.places[i].file)].name;
    layout.index = index.dump(2) + '\n';
    layout.bytes += static_cast<std::int64_t>(layout.index.size());
  }
  layout_add(layout, state, kStateStem, largest_file);
  return layout;
}

}  // namespace shard::checkpoint
