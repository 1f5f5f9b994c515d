// The device's joins and parts of columns, biases and their gradients: values are moved as they are, sums are near.
#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

template <class T>
class CudaColumns : public testing::Test {};
TYPED_TEST_SUITE(CudaColumns, ElementTypes);

TYPED_TEST(CudaColumns, JoinedAndTaken) {
  using T = TypeParam;
  const std::vector<ColumnParts> shapes = {{1, 1, 1}, {7, 33, 3}, {65, 40, 2}, {3, 2100, 4}, {5, 1, 8}};
  for (const ColumnParts& shape : shapes) {
    const std::int64_t n = shape.rows * shape.columns * shape.parts;
    const Vec apart = rounded<T>(random_values(n, 1));
    Vec joined(apart.size());
    for (std::int64_t p = 0; p < shape.parts; ++p)
      for (std::int64_t row = 0; row < shape.rows; ++row)
        for (std::int64_t c = 0; c < shape.columns; ++c)
          joined[u((row * shape.parts + p) * shape.columns + c)] = apart[u((p * shape.rows + row) * shape.columns + c)];
    check<T>(
        [&](auto& c) {
          auto* x = c.in(apart);
          auto* y = c.out(n);
          c.run([&] { join_columns(c.stream(), shape, x, y); });
        },
        {joined}, 0);
    const std::int64_t size = shape.rows * shape.columns;
    for (std::int64_t p = 0; p < shape.parts; ++p)
      check<T>(
          [&](auto& c) {
            auto* x = c.in(joined);
            auto* y = c.out(size);
            c.run([&] { take_columns(c.stream(), shape, p, x, y); });
          },
          {Vec(apart.begin() + p * size, apart.begin() + (p + 1) * size)}, 0, "part " + std::to_string(p));
  }
}

TYPED_TEST(CudaColumns, Bias) {
  using T = TypeParam;
  for (unsigned seed = 0; seed < 8; ++seed) {
    Shapes random(seed);
    const std::int64_t rows = seed == 0 ? 1 : random.upto(700), columns = seed == 1 ? 1 : random.upto(300);
    const Vec x = rounded<T>(random_values(rows * columns, seed + 1)),
              bias = rounded<T>(random_values(columns, seed + 2));
    Vec added = x, total(bias.size(), 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      added[i] += bias[i % u(columns)];
      total[i % u(columns)] += x[i];
    }
    check<T>(
        [&](auto& c) {
          auto* b = c.in(bias);
          auto* y = c.in_out(x);
          c.run([&] { add_bias(c.stream(), rows, columns, b, y); });
        },
        {added}, 1e-7);
    check<T>(
        [&](auto& c) {
          auto* dy = c.in(x);
          auto* db = c.out(columns);
          c.run([&] { bias_gradient(c.stream(), rows, columns, dy, db, Store::write); });
        },
        {total}, 2e-6);
    check<T>(
        [&](auto& c) {
          auto* dy = c.in(x);
          auto* db = c.in_out(bias);
          c.run([&] { bias_gradient(c.stream(), rows, columns, dy, db, Store::add); });
        },
        {sum(total, bias)}, 2e-6);
  }
}

}  // namespace
}  // namespace shard::cuda::test
