// What must have the bits of the host: dropout, steps of optimizers, facts of gradients, sums over members.
#include <bit>

#include "executor/comm/tree_sum.h"
#include "executor/cpu/kernels/dropout.h"
#include "executor/cpu/kernels/exact_sum.h"
#include "executor/cpu/kernels/optimizer.h"
#include "executor/cpu/kernels/rotary.h"
#include "sim/strategy/strategy.h"
#include "tests/comm/reference.h"
#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

template <class T>
std::vector<T> stored(const Vec& values) {
  std::vector<T> all;
  for (const double v : values) all.push_back(from_f32<T>(static_cast<float>(v)));
  return all;
}

template <class T>
class CudaBits : public testing::Test {};
TYPED_TEST_SUITE(CudaBits, ElementTypes);

TYPED_TEST(CudaBits, Dropout) {
  using T = TypeParam;
  const MaskSource source{.seed = 5, .mask = 3, .micro_batches = 8, .micro_batch = 1};
  cpu::ThreadPool pool(1);
  for (const std::int64_t n : {1, 7, 256, 20011})
    for (const float probability : {0.0F, 0.1F, 0.75F}) {
      std::vector<T> y = stored<T>(random_values(n, 1));
      cpu::dropout(pool, dropout_key(5, 9 * 8 + 1, 3), probability, 0, n, y.data(), y.data());
      Vec expected;
      for (const T v : y) expected.push_back(static_cast<double>(to_f32(v)));
      check<T>(
          [&](auto& c) {
            auto* x = c.in_out(random_values(n, 1));
            const std::int64_t* step = c.raw(std::vector<std::int64_t>{9});
            c.run([&] { dropout(c.stream(), source, step, probability, n, x, x); });
          },
          {expected}, 0);
    }
}

TYPED_TEST(CudaBits, Rotary) {
  using T = TypeParam;
  const RotaryShape shape{.batch = 2, .sequence = 67, .heads = 3, .head_dim = 20, .base = 10000.0F};
  const std::int64_t n = 2 * 67 * 3 * 20;
  cpu::ThreadPool pool(1);
  const std::vector<T> x = stored<T>(random_values(n, 2));
  std::vector<T> y(x.size());
  cpu::rotary_forward(pool, shape, x.data(), y.data());
  Vec expected;
  for (const T v : y) expected.push_back(static_cast<double>(to_f32(v)));
  check<T>(
      [&](auto& c) {
        auto* from = c.in(random_values(n, 2));
        auto* to = c.out(n);
        c.run([&] { rotary_forward(c.stream(), shape, from, to); });
      },
      {expected}, 0);
}

/// Three steps of an optimizer on the device and on the host, with a control that skips the second where there is one.
template <class T>
void check_optimizer(plan::OptimizerKind kind, bool controlled, bool decays, Manner manner) {
  constexpr std::int64_t n = 5003;
  const OptimizerScalars scalars{.learning_rate = 0.01, .beta2 = 0.95, .weight_decay = 0.1};
  const std::vector<float> p0 = stored<float>(random_values(n, 1));
  std::vector<float> p = p0, m(u(n)), v(u(n));
  Call<T, T> call(manner);
  float *p_at = call.f32_in_out(random_values(n, 1)), *m_at = call.f32_in_out(Vec(u(n))),
        *v_at = call.f32_in_out(Vec(u(n)));
  std::int32_t* count = call.raw(std::vector<std::int32_t>{40}, model::Access::update);
  const OptimizerScalars* scalars_at = call.raw(std::vector<OptimizerScalars>{scalars});
  std::vector<T*> gradients;
  std::vector<const plan::ControlBlock*> controls;
  std::int32_t counted = 40;
  cpu::ThreadPool pool(1);
  for (unsigned s = 0; s < 3; ++s) {
    const Vec g = random_values(n, 10 + s, 0.1);
    gradients.push_back(call.in(g));
    const plan::ControlBlock block{.multiplier = 0.3F, .skip = s == 1 ? 1 : 0};
    controls.push_back(controlled ? call.raw(std::vector<plan::ControlBlock>{block}) : nullptr);
    if (controlled && s == 1) continue;
    ++counted;
    float multiplier = 0.7F;
    if (controlled) multiplier *= block.multiplier;
    OptimizerScalars own = scalars;
    if (!decays) own.weight_decay = 0;
    const std::vector<T> narrow = stored<T>(g);
    if (kind == plan::OptimizerKind::adam)
      cpu::adam(pool, own, &counted, n, narrow.data(), p.data(), m.data(), v.data(), multiplier);
    if (kind == plan::OptimizerKind::adamw)
      cpu::adamw(pool, own, &counted, n, narrow.data(), p.data(), m.data(), v.data(), multiplier);
    if (kind == plan::OptimizerKind::sgd) cpu::sgd(pool, own, n, narrow.data(), p.data(), nullptr, multiplier);
  }
  call.run([&] {
    for (std::size_t s = 0; s < 3; ++s) {
      const StepState state{
          .scalars = scalars_at, .count = count, .control = controls[s], .factor = 0.7F, .decays = decays};
      if (kind == plan::OptimizerKind::adam) adam(call.stream(), state, n, gradients[s], p_at, m_at, v_at);
      if (kind == plan::OptimizerKind::adamw) adamw(call.stream(), state, n, gradients[s], p_at, m_at, v_at);
      if (kind == plan::OptimizerKind::sgd) sgd(call.stream(), state, n, gradients[s], p_at);
    }
  });
  const auto results = call.results();
  EXPECT_EQ(call.content(count).front(), counted);
  EXPECT_TRUE(same_bits(results[0], p));
  EXPECT_TRUE(same_bits(results[1], m));
  EXPECT_TRUE(same_bits(results[2], v));
  EXPECT_FALSE(same_bits(results[0], p0));
}

TYPED_TEST(CudaBits, Optimizers) {
  using plan::OptimizerKind;
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd})
    for (const Manner& manner : {Manner{1, 0}, Manner{2, 3}})
      for (const bool controlled : {false, true})
        for (const bool decays : {false, true}) {
          SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + (controlled ? " controlled" : ""));
          check_optimizer<TypeParam>(kind, controlled, decays, manner);
        }
}

// Any floats: of all exponents, or of some; zeros, subnormals and what is not finite among them.
template <class T>
std::vector<T> any_values(std::int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> all(u(n));
  for (T& value : all) {
    const std::uint32_t exponent =
        seed % 2 == 0 ? static_cast<std::uint32_t>(engine()) % 256 : 100 + static_cast<std::uint32_t>(engine()) % 20;
    const auto bits = (static_cast<std::uint32_t>(engine()) & 0x807FFFFFU) | exponent << 23;
    value = engine() % 10 == 0 ? T{} : from_f32<T>(std::bit_cast<float>(bits));
  }
  return all;
}

TYPED_TEST(CudaBits, GradientFacts) {
  using T = TypeParam;
  unsigned seed = 0;
  for (const std::int64_t n : {1, 100, 16384, 16385, 60001})
    for (const Manner& manner : {Manner{1, 0}, Manner{2, 0}}) {
      const std::vector<T> x = any_values<T>(n, ++seed);
      GradientFacts start;
      start.limbs[3] = 12345;
      start.nonfinite = 2;
      start.first_nonfinite = seed % 4 == 0 ? 5 : GradientFacts::kNone;
      Call<T, T> call(manner);
      const T* at = call.raw(x);
      GradientFacts* facts = call.raw(std::vector<GradientFacts>{start}, model::Access::update);
      GradientFacts* counts = call.raw(std::vector<GradientFacts>{start}, model::Access::update);
      call.run([&] {
        square_sum_add(call.stream(), n, at, 1000, facts);
        nonfinite_add(call.stream(), n, at, 1000, counts);
      });
      cpu::ThreadPool pool(1);
      GradientFacts expected = start;
      cpu::square_sum_add(pool, x.data(), n, 1000, expected);
      const GradientFacts made = call.content(facts).front(), counted = call.content(counts).front();
      EXPECT_EQ(cpu::square_sum(made), cpu::square_sum(expected)) << n;
      EXPECT_EQ(std::memcmp(&made, &expected, sizeof made), 0) << n << ": words differ from the host's";
      EXPECT_EQ(counted.nonfinite, expected.nonfinite) << n;
      EXPECT_EQ(counted.first_nonfinite, expected.first_nonfinite) << n;
      EXPECT_EQ(std::memcmp(counted.limbs, start.limbs, sizeof start.limbs), 0) << n;
    }
}

TEST(CudaTreeSum, HasTheBitsOfTheHostsTree) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::i64})
    for (const std::int32_t members : {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64}) {
      constexpr std::int64_t n = 601;
      const std::int64_t bytes = bytes_per_element(dtype);
      Call<float, float> call({static_cast<std::uint64_t>(members), 0});
      std::vector<std::vector<std::byte>> values;
      std::vector<const std::byte*> sources;
      MemberPointers in;
      std::byte* last = nullptr;
      for (std::int32_t m = 0; m < members; ++m) {
        std::vector<std::byte>& own = values.emplace_back(u(n * bytes));
        for (std::int64_t i = 0; i < n; ++i) {
          const std::uint64_t bits = shard::test::element_of(dtype, m, i, 1);
          std::memcpy(own.data() + i * bytes, &bits, u(bytes));  // little endian
        }
        last = call.raw(own, model::Access::update);
        in.member[static_cast<std::size_t>(m)] = last;
      }
      for (const auto& own : values) sources.push_back(own.data());
      std::vector<std::byte> expected(u(n * bytes));
      shard::tree_sum(dtype, sources, expected.data(), n);
      std::byte* out = call.raw(std::vector<std::byte>(u(n * bytes)), model::Access::write);
      std::int32_t* word = call.raw(std::vector<std::int32_t>{0}, model::Access::update);
      call.run([&] {
        tree_sum(call.stream(), members, in, n, dtype, out);
        tree_sum(call.stream(), members, in, n, dtype, last);  // in a member's place
        mark(call.stream(), word, members);
      });
      EXPECT_EQ(call.content(out), expected) << to_string(dtype) << " " << members;
      EXPECT_EQ(call.content(last), expected) << to_string(dtype) << " " << members;
      EXPECT_EQ(call.content(word).front(), members);
    }
}

TEST(CudaTable, IsWhole) {
  const Kernels& table = kernels();
  EXPECT_EQ(table.add, &cuda::add);
  EXPECT_EQ(table.attention_backward, &cuda::attention_backward);
  EXPECT_EQ(table.mark, &cuda::mark);
  const auto* entries = reinterpret_cast<void (*const*)()>(&table);
  for (std::size_t i = 0; i < sizeof table / sizeof *entries; ++i) {
    EXPECT_NE(entries[i], nullptr) << i;
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(entries[i], entries[k]) << i << " and " << k;
  }
}

}  // namespace
}  // namespace shard::cuda::test
