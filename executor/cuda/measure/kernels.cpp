// Products of every type, then sums and conversions of large arrays.
#include "executor/cuda/measure/kernels.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "executor/cuda/measure/random_bytes.h"

namespace shard::cuda {
namespace {

/// A type that products are of, and where its best rate goes.
struct ProductType {
  const char* name;
  Dtype dtype;
  bool tensor_float;
  double ProductRates::*best;
};
constexpr std::array<ProductType, 4> kProductTypes{{{"fp32", Dtype::f32, false, &ProductRates::f32},
                                                    {"tf32", Dtype::f32, true, &ProductRates::tf32},
                                                    {"bf16", Dtype::bf16, false, &ProductRates::bf16},
                                                    {"fp16", Dtype::f16, false, &ProductRates::f16}}};

/// Large enough for any of the sizes, in fp32.
struct Matrices {
  std::byte* a = nullptr;
  std::byte* b = nullptr;
  std::byte* c = nullptr;
  std::byte* workspace = nullptr;
};

Result<Matrices> matrices_for(Api& api, const Stopwatch& watch, std::span<const ProductSize> sizes, Bytes workspace) {
  Bytes a;
  Bytes b;
  Bytes c;
  for (const ProductSize& s : sizes) {
    a = std::max(a, Bytes{4 * s.m * s.k});
    b = std::max(b, Bytes{4 * s.k * s.n});
    c = std::max(c, Bytes{4 * s.m * s.n});
  }
  Matrices all;
  for (const auto& [memory, bytes] : {std::pair{&all.a, a}, std::pair{&all.b, b}, std::pair{&all.c, c}}) {
    const Result<std::byte*> made = random_memory(api, watch, bytes);
    if (!made) return made.error();
    *memory = *made;
  }
  const Result<std::byte*> made = api.allocate(workspace);
  if (!made) return made.error();
  all.workspace = *made;
  return all;
}

Result<double> seconds_of_product(Api& api, const Stopwatch& watch, const ProductShape& shape, const Matrices& m,
                                  Bytes workspace, double least) {
  const Result<Product> product = api.prepare_product(shape, workspace);
  if (!product) return product.error();
  const std::int64_t element = bytes_per_element(shape.dtype);
  const std::array ranges{Range{.begin = m.a, .bytes = element * shape.m * shape.k},
                          Range{.begin = m.b, .bytes = element * shape.k * shape.n},
                          Range{.begin = m.c, .bytes = element * shape.m * shape.n, .access = model::Access::write},
                          Range{.begin = m.workspace, .bytes = workspace.count(), .access = model::Access::update}};
  const ProductOperands operands{
      .a = m.a, .b = m.b, .c = m.c, .workspace = {m.workspace, static_cast<std::size_t>(workspace.count())}};
  const auto multiply = [&](Stream stream) { return api.multiply(stream, *product, operands); };
  return watch.seconds([&] { return watch.op(ranges, multiply); }, least);
}

/// The context's and the kernels' own are in use before.
Result<Bytes> taken_by(Api& api, const Result<Product>& product, Bytes free_before) {
  if (!product) return product.error();
  const Result<MemoryInfo> after = api.memory_info();
  if (!after) return after.error();
  return std::max(free_before - after->free, Bytes{0});
}

}  // namespace

Result<ProductRates> measure_products(Api& api, std::span<const ProductSize> sizes, Bytes workspace, double least,
                                      Measurements& into) {
  const Result<Stopwatch> watch = Stopwatch::make(api);
  if (!watch) return watch.error();
  const Result<MemoryInfo> before = api.memory_info();
  if (!before) return before.error();
  const ProductSize& first = sizes.front();
  const Result<Bytes> taken =
      taken_by(api, api.prepare_product({.m = first.m, .n = first.n, .k = first.k}, workspace), before->free);
  if (!taken) return taken.error();
  ProductRates rates{.library_memory = *taken};
  into.push_back({"memory of the matrix library", static_cast<double>(taken->count()), "bytes",
                  "free memory of the device before and after the first product was prepared"});
  const Result<Matrices> matrices = matrices_for(api, *watch, sizes, workspace);
  if (!matrices) return matrices.error();
  for (const ProductType& type : kProductTypes)
    for (const ProductSize& s : sizes) {
      const ProductShape shape{.m = s.m, .n = s.n, .k = s.k, .dtype = type.dtype, .tensor_float = type.tensor_float};
      const Result<double> took = seconds_of_product(api, *watch, shape, *matrices, workspace, least);
      if (!took) return took.error();
      const double rate =
          *took > 0 ? 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) / *took : 0;
      rates.*type.best = std::max(rates.*type.best, rate);
      into.push_back({std::string("product ") + type.name + " " + std::to_string(s.m) + " x " + std::to_string(s.n) +
                          " x " + std::to_string(s.k),
                      rate, "flops/s", "random operands, rows of products between two events, the fastest of three"});
    }
  for (std::byte* memory : {matrices->a, matrices->b, matrices->c, matrices->workspace}) api.free(memory);
  return rates;
}

Result<double> measure_bandwidth(Api& api, const Kernels& kernels, Bytes bytes, double least, Measurements& into) {
  const Result<Stopwatch> watch = Stopwatch::make(api);
  if (!watch) return watch.error();
  std::array<std::byte*, 3> arrays{};
  for (std::byte*& array : arrays) {
    const Result<std::byte*> made = random_memory(api, *watch, bytes);
    if (!made) return made.error();
    array = *made;
  }
  const std::int64_t n = bytes.count() / 4;
  const auto range = [&](std::size_t i, std::int64_t element, model::Access access) {
    return Range{.begin = arrays[i], .bytes = n * element, .access = access};
  };
  const auto floats = [&](std::size_t i) { return Elements(arrays[i], Dtype::f32); };
  const std::array sum{range(0, 4, model::Access::read), range(1, 4, model::Access::read),
                       range(2, 4, model::Access::write)};
  const std::array conversion{range(0, 4, model::Access::read), range(2, 2, model::Access::write)};
  double best = 0;
  const auto measure = [&](const char* name, std::span<const Range> ranges, double moved,
                           const std::function<void(Stream)>& launch) -> Result<void> {
    const auto launched = [&](Stream stream) { return launch(stream), Result<void>(); };
    const Result<double> took = watch->seconds([&] { return watch->op(ranges, launched); }, least);
    if (!took) return took.error();
    const double rate = *took > 0 ? moved / *took : 0;
    best = std::max(best, rate);
    into.push_back(
        {std::string("device memory, ") + name, rate, "bytes/s",
         "a kernel over arrays of " + std::to_string(bytes.count()) +
             " bytes, what it reads and writes over the time between two events, the fastest of three rows"});
    return {};
  };
  const auto count = static_cast<double>(n);
  Result<void> done = measure("sums of two arrays", sum, 12 * count,
                              [&](Stream s) { kernels.add(s, n, floats(0), floats(1), floats(2)); });
  if (done)
    done = measure("conversion of fp32 to bf16", conversion, 6 * count,
                   [&](Stream s) { kernels.convert_copy(s, n, floats(0), Elements(arrays[2], Dtype::bf16)); });
  for (std::byte* array : arrays) api.free(array);
  if (!done) return done.error();
  return best;
}

}  // namespace shard::cuda
