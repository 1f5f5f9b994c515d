// Types as torch/csrc/profiler names them; loops as ATen/native/cuda/CUDALoops.cuh starts them.
#include "sim/price/tensors.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace shard::price {
namespace {

bool is_floating(std::string_view type) {
  return has_any(type, "float", "Float", "double", "Half", "half");
}

/// A decimal number at the begin of a text; 0 where there is none.
int leading_number(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The number behind the first of the words that the text has; 0 where it has none of them.
template <class... Words>
int number_behind(std::string_view text, Words... words) {
  int number = 0;
  const auto look = [&](std::string_view word) {
    const std::size_t at = text.find(word);
    if (number == 0 && at != std::string_view::npos) number = leading_number(text.substr(at + word.size()));
  };
  (look(words), ...);
  return number;
}

}  // namespace

double element_bytes(std::string_view type) {
  if (type.starts_with("c10::")) type.remove_prefix(5);
  if (type.starts_with("at::")) type.remove_prefix(4);
  if (type.starts_with("Float8") || type == "bool" || type == "signed char" || type == "unsigned char" ||
      type == "Byte" || type == "Char" || type == "Bool")
    return 1;
  if (type.starts_with("Float4")) return 0.5;
  if (type == "BFloat16" || type == "Half" || type == "short" || type == "short int") return 2;
  if (type == "float" || type == "int" || type == "Float" || type == "Int") return 4;
  if (type == "double" || type == "long int" || type == "long" || type == "long long" || type == "Long") return 8;
  return type.starts_with("complex") ? 8 : 0;
}

double elements(const Tensor& tensor) {
  double count = 1;
  for (const std::int64_t size : tensor.sizes) count *= static_cast<double>(size);
  return count;
}
double bytes(const Tensor& tensor) {
  return elements(tensor) * element_bytes(tensor.type);
}
double input_bytes(const Operator& op) {
  double sum = 0;
  for (const Tensor& tensor : op.inputs) sum += bytes(tensor);
  return sum;
}
double argument_bytes(const Operator& op, std::int32_t argument) {
  double sum = 0;
  for (const Tensor& tensor : op.inputs)
    if (tensor.argument == argument) sum += bytes(tensor);
  return sum;
}
double elements_of(const Operator& op, std::int32_t argument) {
  double sum = 0;
  for (const Tensor& tensor : op.inputs)
    if (tensor.argument == argument) sum += elements(tensor);
  return sum;
}
const Tensor* tensor_of(const Operator& op, std::int32_t argument) {
  for (const Tensor& tensor : op.inputs)
    if (tensor.argument == argument) return &tensor;
  return nullptr;
}

double broadcast_elements(const Operator& op) {
  std::vector<std::int64_t> shape;  // the last dimension first
  for (const Tensor& tensor : op.inputs) {
    if (tensor.sizes.size() > shape.size()) shape.resize(tensor.sizes.size(), 1);
    for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
      std::int64_t& size = shape[i];
      size = std::max(size, tensor.sizes[tensor.sizes.size() - 1 - i]);
    }
  }
  double count = 1;
  for (const std::int64_t size : shape) count *= static_cast<double>(size);
  return count;
}

double promoted_bytes(const Operator& op) {
  double widest = 0, floating = 0;
  for (const Tensor& tensor : op.inputs) {
    if (tensor.sizes.empty() && op.inputs.size() > 1) continue;
    const double each = element_bytes(tensor.type);
    widest = std::max(widest, each);
    if (is_floating(tensor.type)) floating = std::max(floating, each);
  }
  return floating > 0 ? floating : widest;
}

bool is_true(const Operator& op, std::size_t argument) {
  if (argument >= op.values.size()) return false;
  const std::string& value = op.values[argument];
  return value == "True" || value == "true" || value == "1" || value == "2";
}

std::vector<std::int64_t> numbers_of(const Operator& op, std::size_t argument) {
  std::vector<std::int64_t> numbers;
  if (argument >= op.values.size()) return numbers;
  const std::string& text = op.values[argument];
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) continue;
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data() + i, text.data() + text.size(), number);
    numbers.push_back(number);
    i = static_cast<std::size_t>(end - text.data());
  }
  return numbers;
}

ListTemplate list_template_of(std::string_view kernel) {
  // "BinaryOpScalarFunctorIfLi2ELi1ELi1EE" or "BinaryOpScalarFunctor<float, 2, 1, 1>": lists, those that are read, the
  // result.
  ListTemplate found;
  const std::size_t functor = kernel.find("Functor");
  if (functor == std::string_view::npos) return found;
  const std::string_view rest = kernel.substr(functor, 160);
  for (const std::string_view word : {std::string_view("Li"), std::string_view(", ")}) {
    int numbers[2] = {0, 0}, count = 0;
    for (std::size_t at = rest.find(word); at != std::string_view::npos && count < 2; at = rest.find(word, at + 1)) {
      const int number = leading_number(rest.substr(at + word.size()));
      if (number > 0 && number < 10) numbers[count++] = number;
    }
    if (count == 2) found.read = numbers[1];
    if (count == 1) found.read = numbers[0];
    if (count > 0) break;
  }
  return found;
}

std::optional<Loop> loop_of(const KernelCall& call) {
  const std::string_view name = call.name;
  if (!has_any(name, "elementwise_kernel", "elementwise_grid_stride")) return {};
  const double threads = static_cast<double>(call.grid[0] * call.grid[1] * call.grid[2]) *
                         static_cast<double>(call.block[0] * call.block[1] * call.block[2]);
  double each = 4;
  if (has(name, "vectorized_elementwise_kernel"))
    each = std::max(4, number_behind(name, "vectorized_elementwise_kernelILi", "vectorized_elementwise_kernel<"));
  else if (has(name, "elementwise_kernel_with_index"))
    each = 1;
  const int tensors = number_behind(name, "arrayIPcLm", "ArrayIPcLi", "array<char*, ", "Array<char*, ");
  return Loop{.elements = threads * each, .tensors = tensors};
}

}  // namespace shard::price
