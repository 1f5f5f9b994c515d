// What every kernel test uses: guarded, misaligned buffers, and one check of values and bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "executor/cpu/kernels/threads.h"
#include "tests/kernels/reference.h"

namespace shard::cpu::test {

using ref::Vec;

/// What a call gave: every output.
using Results = std::vector<std::vector<float>>;

/// How a kernel is called: number of threads, and how many bytes its buffers lie behind a cache line.
struct Manner {
  int threads = 1;
  int offset = 0;
};
inline const std::vector<Manner> kManners = {{1, 0}, {2, 0}, {3, 20}, {4, 60}, {1, 4}, {2, 36}};

/// n values at `offset` bytes behind a 64-byte boundary, between guard bytes.
template <class T>
class Buffer {
 public:
  Buffer(std::size_t n, int offset) : n_(n), bytes_(3 * kGuard + n * sizeof(T), kPattern) {
    const auto base = reinterpret_cast<std::uintptr_t>(bytes_.data());
    begin_ = (base + kGuard + 63) / 64 * 64 - base + static_cast<std::size_t>(offset);
  }
  [[nodiscard]] T* data() { return reinterpret_cast<T*>(bytes_.data() + begin_); }
  [[nodiscard]] std::size_t size() const { return n_; }
  [[nodiscard]] bool intact() const {
    const auto clean = [](unsigned char byte) { return byte == kPattern; };
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_), clean) &&
           std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(begin_ + n_ * sizeof(T)), bytes_.end(), clean);
  }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr unsigned char kPattern = 0xA5;
  std::size_t n_;
  std::vector<unsigned char> bytes_;
  std::size_t begin_ = 0;
};

/// The buffers of one call. Outputs begin as NaN; results() is every output in order of declaration.
class Call {
 public:
  explicit Call(Manner manner) : pool(manner.threads), manner_(manner) {}
  ~Call() {
    for (const auto& b : buffers_) EXPECT_TRUE(b.intact()) << "written outside of a buffer";
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  float* in(const Vec& values) {
    Buffer<float>& b = buffers_.emplace_back(values.size(), manner_.offset);
    std::transform(values.begin(), values.end(), b.data(), [](double v) { return static_cast<float>(v); });
    return b.data();
  }
  float* out(std::int64_t n) {
    float* data = in(Vec(static_cast<std::size_t>(n), std::numeric_limits<double>::quiet_NaN()));
    outputs_.push_back(buffers_.size() - 1);
    return data;
  }
  float* in_out(const Vec& values) {
    float* data = in(values);
    outputs_.push_back(buffers_.size() - 1);
    return data;
  }
  std::span<std::byte> workspace(std::int64_t bytes) {
    Buffer<float>& b = buffers_.emplace_back(static_cast<std::size_t>(bytes) / 4, 0);
    return {reinterpret_cast<std::byte*>(b.data()), static_cast<std::size_t>(bytes)};
  }
  std::vector<std::vector<float>> results() {
    std::vector<std::vector<float>> all;
    for (const std::size_t i : outputs_) {
      all.emplace_back(buffers_[i].data(), buffers_[i].data() + buffers_[i].size());
    }
    return all;
  }

  ThreadPool pool;

 private:
  Manner manner_;
  std::deque<Buffer<float>> buffers_;
  std::vector<std::size_t> outputs_;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Largest difference, over the largest magnitude expected.
inline void expect_near(const std::vector<float>& actual, const Vec& expected, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1e-30;
  for (const double e : expected) largest = std::max(largest, std::abs(e));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]) / largest;
    ASSERT_LE(error, tolerance) << what << " element " << i << ": " << actual[i] << ", expected " << expected[i];
  }
}

/// Calls `body(call)` in every manner of kManners: values near `expected` (one vector per output), bits all equal.
inline void check(const std::function<void(Call&)>& body, const std::vector<Vec>& expected, double tolerance) {
  Results first;
  for (const Manner& manner : kManners) {
    Call call(manner);
    body(call);
    const Results results = call.results();
    ASSERT_EQ(results.size(), expected.size());
    if (first.empty()) {
      for (std::size_t i = 0; i < results.size(); ++i) {
        expect_near(results[i], expected[i], tolerance, "output " + std::to_string(i));
      }
      first = results;
      continue;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(same_bits(results[i], first[i]))
          << "output " << i << " differs with " << manner.threads << " threads, offset " << manner.offset;
    }
  }
}

/// n, which is not negative, as a size.
inline std::size_t u(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

/// Values exact in fp32, normal with mean 0.
inline Vec random_values(std::int64_t n, unsigned seed, double deviation = 1.0) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0F, static_cast<float>(deviation));
  Vec values(static_cast<std::size_t>(n));
  for (double& v : values) v = static_cast<double>(normal(engine));
  return values;
}

inline std::vector<std::int32_t> random_tokens_below(std::int64_t n, std::int32_t bound, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<std::int32_t> uniform(0, bound - 1);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(n));
  for (auto& t : tokens) t = uniform(engine);
  return tokens;
}

/// a + b.
inline Vec sum(Vec a, const Vec& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace shard::cpu::test
