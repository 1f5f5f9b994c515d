// The device's attention against the reference: heads of any width, shared and packed ones, partial tiles, dropout.
#include "executor/kernels/philox.h"
#include "sim/target/cuda_workspace.h"
#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

struct AttentionCase {
  std::int64_t batch, sequence, heads, kv_heads, dim;
  float probability = 0;
};
const std::vector<AttentionCase> kAttentionCases = {
    {1, 1, 1, 1, 1, 0.5F},    {2, 5, 4, 2, 6},   {1, 64, 2, 2, 24, 0.1F}, {2, 65, 3, 1, 16, 0.25F}, {1, 150, 4, 2, 33},
    {1, 129, 2, 1, 12, 0.5F}, {2, 20, 2, 2, 40}, {1, 70, 2, 1, 80, 0.3F}, {1, 33, 1, 1, 130, 0.4F}, {1, 40, 2, 1, 256},
};
constexpr double kAttentionTolerance = 5e-6;
constexpr std::int64_t kMaskStep = 6;
constexpr MaskSource kMaskSource{.seed = 7, .mask = 11, .micro_batches = 4, .micro_batch = 2};

// Heads [2, 2 + H) of H + 3.
AttentionDropout drop_of(const AttentionCase& c) {
  return {.probability = c.probability, .key = {}, .heads = c.heads + 3, .first_head = 2};
}

// Every probability's factor, drawn one by one by the rule in executor/kernels/shapes.h.
Vec mask_of(const AttentionCase& c) {
  Vec factors;
  if (c.probability == 0) return factors;
  AttentionDropout drop = drop_of(c);
  drop.key =
      dropout_key(kMaskSource.seed, kMaskStep * kMaskSource.micro_batches + kMaskSource.micro_batch, kMaskSource.mask);
  const auto p = static_cast<double>(c.probability);
  for (std::int64_t b = 0; b < c.batch; ++b)
    for (std::int64_t h = 0; h < c.heads; ++h)
      for (std::int64_t i = 0; i < c.sequence; ++i)
        for (std::int64_t j = 0; j < c.sequence; ++j) {
          const std::int64_t element = drop.first_element(b, h, c.sequence) + AttentionDropout::place(j);
          PhiloxWordsOf<1> words;
          philox(drop.row_key(i), static_cast<std::uint32_t>(element / 4), words);
          factors.push_back(static_cast<double>(words.w[element % 4][0]) < std::floor(p * 0x1p32) ? 0.0 : 1 / (1 - p));
        }
  return factors;
}

/// The operands of one case, each of its own tensor, and what must come of them.
template <class T>
struct AttentionSetting {
  explicit AttentionSetting(const AttentionCase& c, unsigned seed = 0)
      : shape{c.batch, c.sequence, c.heads, c.kv_heads, c.dim},
        tokens(c.batch * c.sequence),
        q_width(c.heads * c.dim),
        k_width(c.kv_heads * c.dim),
        q(rounded<T>(random_values(tokens * q_width, seed + 1, 1.5))),
        k(rounded<T>(random_values(tokens * k_width, seed + 2, 1.5))),
        v(rounded<T>(random_values(tokens * k_width, seed + 3))),
        dy(rounded<T>(random_values(tokens * q_width, seed + 4))) {
    const ref::Attention reference{u(c.batch), u(c.sequence), u(c.heads), u(c.kv_heads), u(c.dim), mask_of(c)};
    forward = ref::attention(reference, q, k, v);
    gradient = ref::attention_backward(reference, q, k, v, dy);
  }
  // [T, (H + 2K) D]: rows of q, then k, then v.
  [[nodiscard]] Vec packed(const Vec& a, const Vec& b, const Vec& d) const {
    Vec all;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (const auto& [part, width] : {std::pair{&a, q_width}, std::pair{&b, k_width}, std::pair{&d, k_width}})
        all.insert(all.end(), part->begin() + t * width, part->begin() + (t + 1) * width);
    return all;
  }
  [[nodiscard]] std::int64_t rows() const { return shape.batch * shape.heads * shape.sequence; }
  AttentionShape shape;
  std::int64_t tokens, q_width, k_width;
  Vec q, k, v, dy;
  ref::AttentionResult forward;
  ref::AttentionGradient gradient;
};

template <class C>
std::byte* workspace_of(C& call, const AttentionShape& shape) {
  return call.workspace(plan::attention_delta_bytes(shape.batch, shape.heads, shape.sequence).count());
}

template <class T>
class CudaAttention : public testing::Test {};
TYPED_TEST_SUITE(CudaAttention, ElementTypes);

TYPED_TEST(CudaAttention, Forward) {
  using T = TypeParam;
  for (const AttentionCase& c : kAttentionCases) {
    const AttentionSetting<T> s(c);
    check<T>(
        [&](auto& call) {
          auto *q = call.in(s.q), *k = call.in(s.k), *v = call.in(s.v), *y = call.out(s.tokens * s.q_width);
          float* lse = call.f32_out(s.rows());
          const std::int64_t* step = call.raw(std::vector<std::int64_t>{kMaskStep});
          call.run([&] {
            attention_forward(call.stream(), s.shape, {q, s.q_width}, {k, s.k_width}, {v, s.k_width}, {y, s.q_width},
                              lse, drop_of(c), kMaskSource, c.probability > 0 ? step : nullptr);
          });
        },
        {s.forward.y, s.forward.lse}, kAttentionTolerance, "sequence " + std::to_string(c.sequence));
  }
}

TYPED_TEST(CudaAttention, Backward) {
  using T = TypeParam;
  for (const AttentionCase& c : kAttentionCases) {
    const AttentionSetting<T> s(c);
    check<T>(
        [&](auto& call) {
          auto *q = call.in(s.q), *k = call.in(s.k), *v = call.in(s.v), *dy = call.in(s.dy);
          auto *dq = call.out(s.tokens * s.q_width), *dk = call.out(s.tokens * s.k_width),
               *dv = call.out(s.tokens * s.k_width);
          const float* lse = call.f32(s.forward.lse);
          std::byte* workspace = workspace_of(call, s.shape);
          const std::int64_t* step = call.raw(std::vector<std::int64_t>{kMaskStep});
          call.run([&] {
            attention_backward(call.stream(), s.shape, {q, s.q_width}, {k, s.k_width}, {v, s.k_width}, lse,
                               {dy, s.q_width}, {dq, s.q_width}, {dk, s.k_width}, {dv, s.k_width}, workspace,
                               drop_of(c), kMaskSource, c.probability > 0 ? step : nullptr);
          });
        },
        {s.gradient.dq, s.gradient.dk, s.gradient.dv}, kAttentionTolerance, "sequence " + std::to_string(c.sequence));
  }
}

TYPED_TEST(CudaAttention, PackedHeads) {
  using T = TypeParam;
  const AttentionCase c{2, 67, 4, 2, 24};
  const AttentionSetting<T> s(c, 10);
  const std::int64_t width = s.q_width + 2 * s.k_width;
  check<T>(
      [&](auto& call) {
        auto* x = call.in(s.packed(s.q, s.k, s.v));
        auto* y = call.out(s.tokens * s.q_width);
        auto* d = call.out(s.tokens * width);
        auto* dy = call.in(s.dy);
        float* lse = call.f32_out(s.rows());
        std::byte* workspace = workspace_of(call, s.shape);
        const HeadsView q{x, width}, k{x + s.q_width, width}, v{x + s.q_width + s.k_width, width};
        call.run([&] {
          attention_forward(call.stream(), s.shape, q, k, v, {y, s.q_width}, lse, {}, {}, nullptr);
          attention_backward(call.stream(), s.shape, q, k, v, lse, {dy, s.q_width}, {d, width}, {d + s.q_width, width},
                             {d + s.q_width + s.k_width, width}, workspace, {}, {}, nullptr);
        });
      },
      {s.forward.y, s.packed(s.gradient.dq, s.gradient.dk, s.gradient.dv), s.forward.lse}, kAttentionTolerance);
}

TEST(CudaAttention, NotANumberReachesTheResult) {
  AttentionSetting<float> s({1, 70, 1, 1, 8});
  s.q[u(3 * 8)] = std::numeric_limits<double>::quiet_NaN();
  s.k[u(40 * 8)] = std::numeric_limits<double>::quiet_NaN();
  Call<float, float> call({});
  float *q = call.in(s.q), *k = call.in(s.k), *v = call.in(s.v), *y = call.out(70 * 8), *lse = call.f32_out(70);
  call.run([&] { attention_forward(call.stream(), s.shape, {q, 8}, {k, 8}, {v, 8}, {y, 8}, lse, {}, {}, nullptr); });
  const auto results = call.results();
  for (std::size_t i = 0; i < 70; ++i) {
    EXPECT_EQ(std::isnan(results[0][8 * i]), i == 3 || i >= 40) << i;
    EXPECT_EQ(std::isnan(results[1][i]), i == 3 || i >= 40) << i;
  }
}

}  // namespace
}  // namespace shard::cuda::test
