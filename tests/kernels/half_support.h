// One check of 16-bit kernels: the fp32 kernel on widened operands, its results rounded, is what they must give.
#pragma once

#include "executor/kernels/elements.h"
#include "sim/target/workspace.h"
#include "tests/kernels/support.h"

namespace shard::cpu::test {

/// The values that a 16-bit buffer holds of `values`.
template <class H>
Vec rounded(Vec values) {
  for (double& v : values) v = static_cast<double>(to_f32(from_f32<H>(static_cast<float>(v))));
  return values;
}

/// The buffers of one call whose elements, of values that H can hold, are stored as S: H, or float.
template <class S, class H>
class HalfCall {
 public:
  explicit HalfCall(Manner manner) : pool(manner.threads), manner_(manner) {}
  ~HalfCall() {
    for (const auto& b : elements_) EXPECT_TRUE(b.intact()) << "written outside of a buffer";
    for (const auto& b : floats_) EXPECT_TRUE(b.intact()) << "written outside of a buffer";
  }
  HalfCall(const HalfCall&) = delete;
  HalfCall& operator=(const HalfCall&) = delete;

  S* in(const Vec& values) {
    // A 16-bit buffer may lie behind a cache line by an odd number of elements.
    auto& b = elements_.emplace_back(values.size(), manner_.offset + (sizeof(S) == 2 && manner_.offset > 0 ? 2 : 0));
    std::transform(values.begin(), values.end(), b.data(),
                   [](double v) { return from_f32<S>(to_f32(from_f32<H>(static_cast<float>(v)))); });
    return b.data();
  }
  S* in_out(const Vec& values) {
    S* data = in(values);
    element_results_.push_back(elements_.size() - 1);
    return data;
  }
  S* out(std::int64_t n) { return in_out(Vec(static_cast<std::size_t>(n), std::numeric_limits<double>::quiet_NaN())); }
  /// Statistics, losses, masters, moments: fp32 in any case.
  float* f32(const Vec& values) {
    auto& b = floats_.emplace_back(values.size(), manner_.offset);
    std::transform(values.begin(), values.end(), b.data(), [](double v) { return static_cast<float>(v); });
    return b.data();
  }
  float* f32_in_out(const Vec& values) {
    float* data = f32(values);
    float_results_.push_back(floats_.size() - 1);
    return data;
  }
  float* f32_out(std::int64_t n) { return f32_in_out(Vec(static_cast<std::size_t>(n), 0.0)); }
  std::span<std::byte> workspace(std::int64_t bytes) {
    auto& b = floats_.emplace_back(static_cast<std::size_t>(bytes) / 4, 0);
    return {reinterpret_cast<std::byte*>(b.data()), static_cast<std::size_t>(bytes)};
  }
  std::span<std::byte> workspace(model::OperatorKind kind, plan::Direction direction, const model::Attributes& a) {
    return workspace(plan::compute_workspace(kind, direction, a, kDtypeOf<S>, pool.threads()).count());
  }
  /// Elements, as H holds them, and then what is fp32, in order of declaration.
  std::vector<std::vector<float>> results() {
    std::vector<std::vector<float>> all;
    for (const std::size_t i : element_results_) {
      auto& values = all.emplace_back(elements_[i].size());
      std::transform(elements_[i].data(), elements_[i].data() + elements_[i].size(), values.begin(),
                     [](S v) { return to_f32(from_f32<H>(to_f32(v))); });
    }
    for (const std::size_t i : float_results_)
      all.emplace_back(floats_[i].data(), floats_[i].data() + floats_[i].size());
    return all;
  }

  ThreadPool pool;

 private:
  Manner manner_;
  std::deque<Buffer<S>> elements_;
  std::deque<Buffer<float>> floats_;
  std::vector<std::size_t> element_results_;
  std::vector<std::size_t> float_results_;
};

/// Half the distance between neighbours of H at x.
template <class H>
double half_ulp(double x) {
  constexpr bool kF16 = kDtypeOf<H> == Dtype::f16;
  const int exponent = std::max(x == 0 ? -1000 : std::ilogb(x), kF16 ? -14 : -126);
  return std::ldexp(0.5, exponent - (kF16 ? 10 : 7));
}

// What a check has of no body is here, compiled once and not for each.
inline void expect_same_half(const Results& results, const Results& exact, const Manner& manner,
                             const std::string& what) {
  ASSERT_EQ(results.size(), exact.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    ASSERT_TRUE(same_bits(results[i], exact[i])) << what << " output " << i << " differs from the fp32 kernel's with "
                                                 << manner.threads << " threads, offset " << manner.offset;
}

template <class H>
void expect_near_half(const Results& exact, const std::vector<Vec>& expected, double tolerance,
                      const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(exact[i].size(), expected[i].size()) << what;
    double largest = 0;
    for (const double e : expected[i]) largest = std::max(largest, std::abs(e));
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      const double e = expected[i][k];
      ASSERT_LE(std::abs(static_cast<double>(exact[i][k]) - e), half_ulp<H>(e) * 1.01 + tolerance * largest)
          << what << " output " << i << " element " << k << ": " << exact[i][k] << ", expected " << e;
    }
  }
}

/// Calls `body(call)` in fp32 with one thread and in H in every manner: the same bits. Against `expected` (elements,
/// then fp32; empty: not compared): half a unit of H, and `tolerance` of the largest value.
template <class H, class Body>
void check_half(const Body& body, const std::vector<Vec>& expected, double tolerance, const std::string& what = "") {
  HalfCall<float, H> wide({1, 0});
  body(wide);
  const Results exact = wide.results();
  for (const Manner& manner : kManners) {
    HalfCall<H, H> call(manner);
    body(call);
    expect_same_half(call.results(), exact, manner, what);
    if (testing::Test::HasFatalFailure()) return;
  }
  expect_near_half<H>(exact, expected, tolerance, what);
}

/// A test suite's types of elements.
using Halves = testing::Types<Bf16, F16>;

/// Shapes for one case of a test over random ones.
class Shapes {
 public:
  explicit Shapes(unsigned seed) : engine_(seed) {}
  std::int64_t upto(std::int64_t most) {
    return 1 + static_cast<std::int64_t>(engine_() % static_cast<unsigned>(most));
  }
  bool coin() { return engine_() % 2 == 0; }

 private:
  std::mt19937 engine_;
};

}  // namespace shard::cpu::test
