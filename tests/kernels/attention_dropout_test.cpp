// Dropout of attention probabilities: against the reference with the same mask, and what the mask may depend on.
#include <numeric>

#include "executor/cpu/kernels/attention.h"
#include "executor/cpu/kernels/dropout.h"
#include "tests/kernels/half_support.h"

namespace shard::cpu::test {
namespace {

struct AttentionDropoutCase {
  std::int64_t batch, sequence, heads, kv_heads, dim;
  float probability;
};

// The factors of one head's query i, drawn one by one from the public generator by the rule in the header.
std::vector<float> row_factors(const AttentionDropout& drop, std::int64_t b, std::int64_t h, std::int64_t i,
                               std::int64_t sequence) {
  ThreadPool pool(1);
  std::vector<float> factors;
  for (std::int64_t j = 0; j < sequence; ++j) {
    float factor = 1;
    dropout(pool, drop.row_key(i), drop.probability, drop.first_element(b, h, sequence) + AttentionDropout::place(j), 1,
            &factor, &factor);
    factors.push_back(factor);
  }
  return factors;
}

Vec attention_mask(const AttentionDropoutCase& c, const AttentionDropout& drop) {
  Vec all;
  for (std::int64_t b = 0; b < c.batch; ++b)
    for (std::int64_t h = 0; h < c.heads; ++h)
      for (std::int64_t i = 0; i < c.sequence; ++i) {
        const std::vector<float> row = row_factors(drop, b, h, i, c.sequence);
        all.insert(all.end(), row.begin(), row.end());
      }
  return all;
}

/// The operands of one case, each of its own tensor.
struct Operands {
  explicit Operands(const AttentionDropoutCase& c)
      : tokens(c.batch * c.sequence),
        q_width(c.heads * c.dim),
        k_width(c.kv_heads * c.dim),
        q(random_values(tokens * q_width, 1, 1.5)),
        k(random_values(tokens * k_width, 2, 1.5)),
        v(random_values(tokens * k_width, 3)),
        dy(random_values(tokens * q_width, 4)) {}
  std::int64_t tokens, q_width, k_width;
  Vec q, k, v, dy;
};

AttentionShape shape_of(const AttentionDropoutCase& c) {
  return {c.batch, c.sequence, c.heads, c.kv_heads, c.dim};
}
ref::Attention reference_of(const AttentionDropoutCase& c, const AttentionDropout& drop) {
  return {u(c.batch), u(c.sequence), u(c.heads), u(c.kv_heads), u(c.dim), attention_mask(c, drop)};
}
AttentionDropout drop_of(const AttentionDropoutCase& c, std::uint64_t seed = 7) {
  return {.probability = c.probability, .key = dropout_key(seed, 3, 11), .heads = c.heads + 3, .first_head = 2};
}

/// y and lse, or dq, dk and dv: as check() and check_half() call them.
template <class C>
void run_forward(C& call, const AttentionDropoutCase& c, const Operands& o, float* lse, const AttentionDropout& drop,
                 Dtype storage) {
  attention_forward(
      call.pool, shape_of(c), {call.in(o.q), o.q_width}, {call.in(o.k), o.k_width}, {call.in(o.v), o.k_width},
      {call.out(o.tokens * o.q_width), o.q_width}, lse,
      call.workspace(plan::attention_forward_workspace(c.sequence, call.pool.threads(), storage, c.dim).count()), drop);
}
template <class C>
void run_backward(C& call, const AttentionDropoutCase& c, const Operands& o, const float* lse,
                  const AttentionDropout& drop, Dtype storage) {
  auto* dq = call.out(o.tokens * o.q_width);
  auto* dk = call.out(o.tokens * o.k_width);
  auto* dv = call.out(o.tokens * o.k_width);
  attention_backward(
      call.pool, shape_of(c), {call.in(o.q), o.q_width}, {call.in(o.k), o.k_width}, {call.in(o.v), o.k_width}, lse,
      {call.in(o.dy), o.q_width}, {dq, o.q_width}, {dk, o.k_width}, {dv, o.k_width},
      call.workspace(plan::attention_backward_workspace(c.sequence, call.pool.threads(), storage, c.dim).count()),
      drop);
}

class AttentionDropoutTest : public testing::TestWithParam<AttentionDropoutCase> {};

TEST_P(AttentionDropoutTest, IsTheReferenceWithTheSameMask) {
  const AttentionDropoutCase& c = GetParam();
  const Operands o(c);
  const AttentionDropout drop = drop_of(c);
  const ref::Attention reference = reference_of(c, drop);
  const ref::AttentionResult f = ref::attention(reference, o.q, o.k, o.v);
  const ref::AttentionGradient g = ref::attention_backward(reference, o.q, o.k, o.v, o.dy);
  check(
      [&](Call& call) {
        // Results in order of declaration: y is the operand's, lse before it.
        float* lse = call.out(c.batch * c.heads * c.sequence);
        run_forward(call, c, o, lse, drop, Dtype::f32);
      },
      {f.lse, f.y}, 5e-6);
  check([&](Call& call) { run_backward(call, c, o, call.in(f.lse), drop, Dtype::f32); }, {g.dq, g.dk, g.dv}, 5e-6);
}

TEST_P(AttentionDropoutTest, HalvesAreTheRoundedResult) {
  const AttentionDropoutCase& c = GetParam();
  const AttentionDropout drop = drop_of(c);
  const auto each = [&]<class H>(H) {
    Operands o(c);
    for (Vec* x : {&o.q, &o.k, &o.v, &o.dy}) *x = rounded<H>(*x);
    const Vec lse = ref::attention(reference_of(c, drop), o.q, o.k, o.v).lse;
    check_half<H>(
        [&]<class C>(C& call) {
          using S = std::remove_pointer_t<decltype(call.in(o.q))>;
          run_forward(call, c, o, call.f32_out(c.batch * c.heads * c.sequence), drop, kDtypeOf<S>);
        },
        {}, 0);
    check_half<H>(
        [&]<class C>(C& call) {
          using S = std::remove_pointer_t<decltype(call.in(o.q))>;
          run_backward(call, c, o, call.f32(lse), drop, kDtypeOf<S>);
        },
        {}, 0);
  };
  each(Bf16{});
  each(F16{});
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionDropoutTest,
                         testing::Values(AttentionDropoutCase{1, 1, 1, 1, 1, 0.5F},
                                         AttentionDropoutCase{2, 5, 4, 2, 6, 0.5F},
                                         AttentionDropoutCase{1, 64, 2, 2, 20, 0.1F},
                                         AttentionDropoutCase{2, 65, 3, 1, 16, 0.25F},
                                         AttentionDropoutCase{1, 150, 4, 2, 33, 0.9F}));

// The derivative of the kernel's own result, the mask fixed by its key.
TEST(AttentionDropout, GradientIsTheDerivative) {
  const AttentionDropoutCase c{1, 6, 2, 1, 4, 0.4F};
  const Operands o(c);
  const AttentionDropout drop = drop_of(c);
  const auto loss = [&](const Operands& at) {
    Call call({1, 0});
    float* lse = call.in(Vec(u(c.batch * c.heads * c.sequence)));
    run_forward(call, c, at, lse, drop, Dtype::f32);
    const std::vector<float> y = call.results()[0];
    return std::inner_product(y.begin(), y.end(), at.dy.begin(), 0.0);
  };
  Call call({1, 0});
  const Vec lse = ref::attention(reference_of(c, drop), o.q, o.k, o.v).lse;
  run_backward(call, c, o, call.in(lse), drop, Dtype::f32);
  const std::vector<std::vector<float>> gradients = call.results();
  const std::vector<Vec Operands::*> inputs{&Operands::q, &Operands::k, &Operands::v};
  for (std::size_t t = 0; t < inputs.size(); ++t)
    for (std::size_t i = 0; i < (o.*inputs[t]).size(); ++i) {
      constexpr double kStep = 1.0 / 64;
      Operands up = o, down = o;
      (up.*inputs[t])[i] += kStep;
      (down.*inputs[t])[i] -= kStep;
      EXPECT_NEAR(gradients[t][i], (loss(up) - loss(down)) / (2 * kStep), 3e-3) << t << ' ' << i;
    }
}

TEST(AttentionDropout, OverManyMasksTheMeanIsWhatIsNotDropped) {
  const AttentionDropoutCase c{1, 20, 2, 2, 4, 0.3F};
  const Operands o(c);
  const auto result = [&](const AttentionDropout& drop) {
    Call call({1, 0});
    run_forward(call, c, o, call.in(Vec(u(c.batch * c.heads * c.sequence))), drop, Dtype::f32);
    return call.results()[0];
  };
  constexpr int kMasks = 2000;
  const std::vector<float> whole = result({});
  std::vector<double> sum(whole.size()), squares(whole.size());
  for (int seed = 0; seed < kMasks; ++seed) {
    const std::vector<float> y = result(drop_of(c, static_cast<std::uint64_t>(seed)));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double d = static_cast<double>(y[i]) - static_cast<double>(whole[i]);
      sum[i] += d;
      squares[i] += d * d;
    }
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    EXPECT_LE(std::abs(sum[i]), 5 * std::sqrt(squares[i]) + 1e-3) << i << ": a mean off by " << sum[i] / kMasks;
}

TEST(AttentionDropout, NothingToDropIsTheSameBits) {
  const AttentionDropoutCase c{2, 70, 2, 1, 8, 0.0F};
  const Operands o(c);
  const Vec lse = random_values(c.batch * c.heads * c.sequence, 5);
  const auto results = [&](const AttentionDropout& drop) {
    Call call({2, 4});
    run_forward(call, c, o, call.out(c.batch * c.heads * c.sequence), drop, Dtype::f32);
    run_backward(call, c, o, call.in(lse), drop, Dtype::f32);
    return call.results();
  };
  EXPECT_EQ(results(drop_of(c)), results({}));
}

// Two ranks of two heads each are one of four: what a head drops is its place in the whole model, not on the rank.
TEST(AttentionDropout, PartsOfTheHeadsDropWhatAllDo) {
  const AttentionDropoutCase all{1, 70, 4, 2, 8, 0.3F};
  const Operands o(all);
  const AttentionShape part{1, 70, 2, 1, 8};
  const AttentionDropout whole{.probability = 0.3F, .key = dropout_key(1, 2, 3), .heads = 4, .first_head = 0};
  const Vec lse = random_values(all.heads * all.sequence, 5);
  const auto results = [&](bool in_parts) {
    Call call({1, 0});
    const float *q = call.in(o.q), *k = call.in(o.k), *v = call.in(o.v), *dy = call.in(o.dy), *l = call.in(lse);
    float *y = call.out(o.tokens * o.q_width), *made = call.out(all.heads * all.sequence);
    float *dq = call.out(o.tokens * o.q_width), *dk = call.out(o.tokens * o.k_width),
          *dv = call.out(o.tokens * o.k_width);
    const auto workspace = call.workspace(plan::attention_backward_workspace(all.sequence, 1).count());
    for (std::int64_t rank = 0; rank < (in_parts ? 2 : 1); ++rank) {
      AttentionDropout drop = whole;
      drop.first_head = rank * part.heads;
      const AttentionShape& shape = in_parts ? part : shape_of(all);
      const std::int64_t at = rank * 16, kv = rank * 8, row = rank * 2 * all.sequence;
      attention_forward(call.pool, shape, {q + at, o.q_width}, {k + kv, o.k_width}, {v + kv, o.k_width},
                        {y + at, o.q_width}, made + row, workspace, drop);
      attention_backward(call.pool, shape, {q + at, o.q_width}, {k + kv, o.k_width}, {v + kv, o.k_width}, l + row,
                         {dy + at, o.q_width}, {dq + at, o.q_width}, {dk + kv, o.k_width}, {dv + kv, o.k_width},
                         workspace, drop);
    }
    return call.results();
  };
  EXPECT_EQ(results(true), results(false));
}

TEST(AttentionDropout, EveryRowOfEverySequenceAndHeadHasItsOwnMask) {
  const AttentionDropout drop{.probability = 0.5F, .key = dropout_key(1, 2, 3), .heads = 3, .first_head = 0};
  constexpr std::int64_t kKeys = 500;
  std::vector<std::vector<float>> rows;
  for (std::int64_t b : {0, 1})
    for (std::int64_t h : {0, 2})
      for (std::int64_t i : {0, 1, 64, 499}) rows.push_back(row_factors(drop, b, h, i, kKeys));
  for (std::size_t x = 0; x < rows.size(); ++x) {
    EXPECT_NEAR(static_cast<double>(std::count(rows[x].begin(), rows[x].end(), 0.0F)), kKeys / 2, 60);
    for (std::size_t y = 0; y < x; ++y) {
      int same = 0;
      for (std::size_t j = 0; j < kKeys; ++j) same += rows[x][j] == rows[y][j] ? 1 : 0;
      EXPECT_NEAR(same, kKeys / 2, 60) << x << " and " << y;
    }
  }
}

// A place in the sequence for every key, none of them twice, and room for the longest sequences that anyone trains.
TEST(AttentionDropout, LongSequencesHaveRoom) {
  std::vector<bool> taken(640);
  for (std::int64_t j = 0; j < 640; ++j) {
    const auto place = u(AttentionDropout::place(j));
    ASSERT_LT(place, taken.size());
    EXPECT_FALSE(taken[place]) << j;
    taken[place] = true;
  }
  const AttentionDropout drop{.probability = 0.5F, .key = dropout_key(1, 2, 3), .heads = 128, .first_head = 0};
  EXPECT_LE(drop.first_element(128, 0, 1 << 20), std::int64_t{1} << 34);
  EXPECT_NE(row_factors(drop, 127, 127, (1 << 20) - 1, 200), row_factors(drop, 0, 0, (1 << 20) - 1, 200));
}

}  // namespace
}  // namespace shard::cpu::test
