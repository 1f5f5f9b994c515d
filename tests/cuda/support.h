// What tests of the device's operators share: operands on a device of their own, and one check of values and bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/cuda/tested_device.h"
#include "tests/cuda/tested_kernels.h"
#include "tests/kernels/half_support.h"

namespace shard::cuda::test {

namespace ref = cpu::ref;
using cpu::test::random_tokens_below;
using cpu::test::random_values;
using cpu::test::Results;
using cpu::test::rounded;
using cpu::test::same_bits;
using cpu::test::Shapes;
using cpu::test::sum;
using cpu::test::u;
using ref::Vec;

/// How a kernel is called: the order of its threads, and how many elements its operands lie behind 512 bytes.
struct Manner {
  std::uint64_t seed = 1;
  std::int64_t offset = 0;
};
inline const std::vector<Manner> kManners = {{1, 0}, {2, 0}, {3, 1}, {4, 6}};

/// One device, one stream.
class Device {
 public:
  explicit Device(std::uint64_t seed) : api_(tested_device({.seed = seed}).api) {
    stream_ = api_->make_stream("compute").value();
    event_ = api_->make_event().value();
  }
  [[nodiscard]] Api& api() { return *api_; }
  [[nodiscard]] Stream stream() const { return stream_; }
  [[nodiscard]] std::byte* allocate(std::int64_t bytes) { return api_->allocate(Bytes{bytes}).value(); }
  void free(std::byte* memory) { api_->free(memory); }
  /// Returns when it is done.
  void copy(void* to, const void* from, std::int64_t bytes) {
    EXPECT_TRUE(api_->copy(stream_, to, from, bytes));
    finish();
  }
  /// What is enqueued from here on is one op that touches `ranges`.
  [[nodiscard]] bool begin(const std::vector<Range>& ranges) {
    const Result<void> begun = api_->begin_op(stream_, {.name = "tested", .ranges = ranges});
    EXPECT_TRUE(begun) << to_string(begun.error());
    return begun.has_value();
  }
  /// Ends the op; returns when it is done.
  void end() {
    const Result<void> ended = api_->end_op(stream_);
    ASSERT_TRUE(ended) << to_string(ended.error());
    finish();
  }

 private:
  void finish() {
    ASSERT_TRUE(api_->record(event_, stream_));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    for (;;) {
      const Result<bool> done = api_->is_done(event_);
      ASSERT_TRUE(done) << to_string(done.error());
      if (*done) return;
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the stream hangs";
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Api> api_;
  Stream stream_ = nullptr;
  Event event_ = nullptr;
};

/// The device of a seed. It is kept for the calls to come, until a test has failed on it.
inline std::shared_ptr<Device> device_of(std::uint64_t seed) {
  static std::map<std::uint64_t, std::shared_ptr<Device>> devices;
  std::shared_ptr<Device>& device = devices[seed];
  if (device == nullptr || testing::Test::HasFailure()) device = std::make_shared<Device>(seed);
  return device;
}

/// An operand between guard bytes of the device's memory.
class Operand {
 public:
  Operand(Device& device, const void* content, std::int64_t bytes, std::int64_t offset, model::Access access)
      : bytes_(bytes), begin_(kGuard + offset), access_(access) {
    std::vector<unsigned char> image(static_cast<std::size_t>(begin_ + bytes + kGuard), kPattern);
    if (bytes > 0) std::memcpy(image.data() + begin_, content, static_cast<std::size_t>(bytes));
    memory_ = device.allocate(static_cast<std::int64_t>(image.size()));
    device.copy(memory_, image.data(), static_cast<std::int64_t>(image.size()));
  }
  void free(Device& device) const { device.free(memory_); }
  [[nodiscard]] std::byte* data() const { return memory_ + begin_; }
  [[nodiscard]] Range range() const { return {data(), bytes_, access_}; }
  /// What it holds now. Fails where a guard byte has changed.
  template <class T>
  [[nodiscard]] std::vector<T> content(Device& device) const {
    std::vector<unsigned char> image(static_cast<std::size_t>(begin_ + bytes_ + kGuard));
    device.copy(image.data(), memory_, static_cast<std::int64_t>(image.size()));
    const auto clean = [](unsigned char byte) { return byte == kPattern; };
    EXPECT_TRUE(std::all_of(image.begin(), image.begin() + begin_, clean) &&
                std::all_of(image.end() - kGuard, image.end(), clean))
        << "written outside of an operand";
    std::vector<T> values(static_cast<std::size_t>(bytes_) / sizeof(T));
    if (bytes_ > 0) std::memcpy(values.data(), image.data() + begin_, static_cast<std::size_t>(bytes_));
    return values;
  }

 private:
  static constexpr std::int64_t kGuard = 512;
  static constexpr unsigned char kPattern = 0xA5;
  std::int64_t bytes_;
  std::int64_t begin_;
  model::Access access_;
  std::byte* memory_ = nullptr;
};

/// The operands of one call, freed with it. Elements, of values that T can hold, are stored as S: T, or float. What is
/// only read is declared as such, outputs begin as NaN.
template <class S, class T>
class Call {
 public:
  using Stored = S;
  explicit Call(Manner manner) : manner_(manner), device_(device_of(manner.seed)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    for (const Operand& operand : operands_) operand.free(*device_);
  }

  S* in(const Vec& values) { return elements(values, model::Access::read); }
  S* in_out(const Vec& values) { return kept(element_results_, elements(values, model::Access::update)); }
  S* out(std::int64_t n) {
    return kept(element_results_, elements(Vec(static_cast<std::size_t>(n), kNan), model::Access::write));
  }
  /// Statistics, losses, masters, moments: fp32 in any case.
  float* f32(const Vec& values) { return floats(values, model::Access::read); }
  float* f32_in_out(const Vec& values) { return kept(float_results_, floats(values, model::Access::update)); }
  float* f32_out(std::int64_t n) {
    return kept(float_results_, floats(Vec(static_cast<std::size_t>(n), kNan), model::Access::write));
  }
  /// Tokens, scalars, counts: as they are.
  template <class W>
  W* raw(const std::vector<W>& values, model::Access access = model::Access::read) {
    return add(values, 0, access);
  }
  std::byte* workspace(std::int64_t bytes) {
    return add(std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0xFF}), 0, model::Access::write);
  }

  [[nodiscard]] Stream stream() const { return device_->stream(); }
  /// Enqueues what is tested, all operands being there, and waits.
  template <class F>
  void run(const F& enqueue) {
    if (!begin()) return;
    enqueue();
    device_->end();
  }

  /// Elements, as T holds them, and then what is fp32, in order of declaration.
  [[nodiscard]] std::vector<std::vector<float>> results() {
    std::vector<std::vector<float>> all;
    for (const std::size_t i : element_results_) {
      const std::vector<S> values = operands_[i].template content<S>(*device_);
      auto& wide = all.emplace_back(values.size());
      std::transform(values.begin(), values.end(), wide.begin(), [](S v) { return to_f32(from_f32<T>(to_f32(v))); });
    }
    for (const std::size_t i : float_results_) all.push_back(operands_[i].template content<float>(*device_));
    for (const Operand& operand : operands_) (void)operand.template content<std::byte>(*device_);
    return all;
  }
  /// What a raw operand holds now.
  template <class W>
  [[nodiscard]] std::vector<W> content(const W* data) {
    for (const Operand& operand : operands_)
      if (operand.data() == reinterpret_cast<const std::byte*>(data)) return operand.template content<W>(*device_);
    ADD_FAILURE() << "no operand begins there";
    return {};
  }

 private:
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  [[nodiscard]] bool begin() {
    std::vector<Range> ranges;
    for (const Operand& operand : operands_) ranges.push_back(operand.range());
    return device_->begin(ranges);
  }
  template <class W>
  W* add(const std::vector<W>& values, std::int64_t offset, model::Access access) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(W));
    const auto size = static_cast<std::int64_t>(sizeof(W));
    return reinterpret_cast<W*>(operands_.emplace_back(*device_, values.data(), bytes, offset * size, access).data());
  }
  S* elements(const Vec& values, model::Access access) {
    std::vector<S> stored(values.size());
    std::transform(values.begin(), values.end(), stored.begin(),
                   [](double v) { return from_f32<S>(to_f32(from_f32<T>(static_cast<float>(v)))); });
    return add(stored, manner_.offset, access);
  }
  float* floats(const Vec& values, model::Access access) {
    return add(std::vector<float>(values.begin(), values.end()), manner_.offset, access);
  }
  template <class W>
  W* kept(std::vector<std::size_t>& results, W* data) {
    results.push_back(operands_.size() - 1);
    return data;
  }

  Manner manner_;
  std::shared_ptr<Device> device_;
  std::deque<Operand> operands_;
  std::vector<std::size_t> element_results_;
  std::vector<std::size_t> float_results_;
};

/// Half the distance between neighbours of T at x; of fp32, none: there the tolerance says it all.
template <class T>
double half_ulp(double x) {
  if constexpr (std::is_same_v<T, float>)
    return 0;
  else
    return cpu::test::half_ulp<T>(x);
}

// What a check has of no body is here, compiled once and not for each.
inline void expect_same(const Results& results, const Results& exact, const Manner& manner, const std::string& what) {
  ASSERT_EQ(results.size(), exact.size()) << what;
  for (std::size_t i = 0; i < results.size(); ++i)
    ASSERT_TRUE(same_bits(results[i], exact[i]))
        << what << " output " << i << " differs with seed " << manner.seed << ", offset " << manner.offset;
}

template <class T>
void expect_near(const Results& exact, const std::vector<Vec>& expected, double tolerance, const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(exact[i].size(), expected[i].size()) << what;
    double largest = 1e-30;
    for (const double e : expected[i]) largest = std::max(largest, std::abs(e));
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      const double e = expected[i][k];
      ASSERT_LE(std::abs(static_cast<double>(exact[i][k]) - e), half_ulp<T>(e) * 1.01 + tolerance * largest)
          << what << " output " << i << " element " << k << ": " << exact[i][k] << ", expected " << e;
    }
  }
}

/// Calls `body(call)` in every manner: bits all equal, in 16 bits also to those in fp32, rounded. Against `expected`
/// (elements, then fp32; empty: not compared): half a unit of T, and `tolerance` of the largest value.
template <class T, class Body>
void check(const Body& body, const std::vector<Vec>& expected, double tolerance, const std::string& what = "") {
  Call<float, T> wide({});
  body(wide);
  const Results exact = wide.results();
  for (const Manner& manner : kManners) {
    Call<T, T> call(manner);
    body(call);
    expect_same(call.results(), exact, manner, what);
    if (testing::Test::HasFatalFailure()) return;
  }
  expect_near<T>(exact, expected, tolerance, what);
}

/// Lengths around packs of elements and around blocks.
inline const std::vector<std::int64_t> kLengths = {1, 7, 8, 33, 257, 2055, 40001};

/// fn of each three elements.
template <class F>
Vec each(const F& fn, const Vec& a, const Vec& b, const Vec& c) {
  Vec y(a.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = fn(a[i], b[i], c[i]);
  return y;
}

/// A test suite's types of elements.
using ElementTypes = testing::Types<float, Bf16, F16>;

}  // namespace shard::cuda::test
