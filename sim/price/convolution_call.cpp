// Operators of ATen: input, weight, (bias,) then lists of stride, padding, dilation; groups.
#include "sim/price/convolution_call.h"

#include <algorithm>
#include <array>

#include "sim/price/tensors.h"

namespace shard::price {
namespace {

/// Arguments of an operator; -1: it has none.
struct ConvolutionRow {
  std::string_view name;
  std::int32_t input, weight, gradient;
  std::size_t stride, padding, groups;
};
constexpr std::array<ConvolutionRow, 7> kConvolutions{{
    {"aten::cudnn_convolution", 0, 1, -1, 3, 2, 5},
    {"aten::convolution", 0, 1, -1, 3, 4, 8},
    {"aten::_convolution", 0, 1, -1, 3, 4, 8},
    {"aten::conv2d", 0, 1, -1, 3, 4, 6},
    {"aten::cudnn_convolution_relu", 0, 1, -1, 3, 4, 6},
    {"aten::convolution_backward", 1, 2, 0, 4, 5, 9},
    {"aten::_slow_conv2d_forward", 0, 1, -1, 4, 5, 99},
}};

std::int64_t at(const std::vector<std::int64_t>& numbers, std::size_t i, std::int64_t otherwise) {
  if (numbers.empty()) return otherwise;
  return i < numbers.size() ? numbers[i] : numbers.back();
}

}  // namespace

bool is_convolution(const KernelCall& call) {
  return call.op != nullptr && std::ranges::find(kConvolutions, std::string_view(call.op->name),
                                                 &ConvolutionRow::name) != kConvolutions.end();
}

std::optional<ConvolutionCall> convolution_of(const KernelCall& call) {
  if (call.op == nullptr) return {};
  const Operator& op = *call.op;
  const auto* const row = std::ranges::find(kConvolutions, std::string_view(op.name), &ConvolutionRow::name);
  if (row == kConvolutions.end()) return {};
  const Tensor *const input = tensor_of(op, row->input), *const weight = tensor_of(op, row->weight);
  if (input == nullptr || weight == nullptr || input->sizes.size() < 3 || weight->sizes.size() != input->sizes.size())
    return {};
  const std::vector<std::int64_t> strides = numbers_of(op, row->stride), paddings = numbers_of(op, row->padding),
                                  groups = numbers_of(op, row->groups);
  double places = static_cast<double>(input->sizes[0]), window = 1;
  const Tensor* const gradient = row->gradient >= 0 ? tensor_of(op, row->gradient) : nullptr;
  for (std::size_t i = 2; i < input->sizes.size(); ++i) {
    const std::int64_t size = weight->sizes[i];
    window *= static_cast<double>(size);
    const std::int64_t stride = std::max<std::int64_t>(1, at(strides, i - 2, 1)), padding = at(paddings, i - 2, 0);
    const std::int64_t made = gradient != nullptr && i < gradient->sizes.size()
                                  ? gradient->sizes[i]
                                  : (input->sizes[i] + 2 * std::min(padding, kMostOfSize) - size) / stride + 1;
    places *= static_cast<double>(std::max<std::int64_t>(1, made));
  }
  ConvolutionCall found;
  if (weight->sizes[0] <= 0 || weight->sizes[1] <= 0) return {};
  found.groups = std::clamp<std::int64_t>(groups.empty() ? input->sizes[1] / weight->sizes[1] : groups.front(), 1,
                                          weight->sizes[0]);
  found.element_bytes = element_bytes(input->type);
  constexpr std::int64_t kFewChannels = 8;  // kernels for pictures with three colours: no law
  if (weight->sizes[1] < kFewChannels && found.groups == 1) return {};
  const std::int64_t out = weight->sizes[0] / found.groups, in = weight->sizes[1];
  const bool of_weights = has_any(call.name, "wgrad", "BackwardFilter");
  const double from = static_cast<double>(in) * window, to = static_cast<double>(out);
  const auto whole = [](double size) {
    return static_cast<std::int64_t>(std::min(size, static_cast<double>(kMostOfSize)));
  };
  found.m = whole(of_weights ? to : places);
  found.n = whole(of_weights ? from : to);
  found.k = whole(of_weights ? places : from);
  found.moved_bytes =
      bytes(*input) + bytes(*weight) + places * static_cast<double>(weight->sizes[0]) * found.element_bytes;
  return found;
}

}  // namespace shard::price
