// An emulated device with what tests do again and again: values put there, read back, waited for.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/cuda/emulated/emulated.h"
#include "executor/cuda/kernels/device.h"

namespace shard::cuda {

class EmulatedDevice {
 public:
  explicit EmulatedDevice(const EmulatedOptions& options = {}) : api_(make_emulated(options).value()) {}
  Api& operator*() { return *api_; }
  Api* operator->() { return api_.get(); }

  Stream stream(const std::string& name = "compute") { return api_->make_stream(name).value(); }

  /// The stream's work done, or what went wrong.
  Result<void> finish(Stream stream) {
    const auto event = api_->make_event();
    if (!event) return event.error();
    if (const auto recorded = api_->record(*event, stream); !recorded) return recorded.error();
    for (int question = 0; question < 1'000'000; ++question) {
      const auto done = api_->is_done(*event);
      if (!done) return done.error();
      if (*done) return {};
    }
    return Error{Errc::retryable, "never done", "", ""};
  }

  template <class T>
  T* make(Stream stream, const std::vector<T>& values) {
    T* const memory = room<T>(values.size());
    EXPECT_TRUE(api_->copy(stream, memory, values.data(), bytes<T>(values.size())));
    return memory;
  }
  template <class T>
  T* room(std::size_t n) {
    return reinterpret_cast<T*>(api_->allocate(Bytes{bytes<T>(n)}).value());
  }
  template <class T>
  std::vector<T> read(Stream stream, const T* memory, std::size_t n) {
    std::vector<T> values(n);
    EXPECT_TRUE(api_->copy(stream, values.data(), memory, bytes<T>(n)));
    const auto finished = finish(stream);
    EXPECT_TRUE(finished) << (finished ? "" : to_string(finished.error()));
    return values;
  }
  template <class T>
  static std::int64_t bytes(std::size_t n) {
    return static_cast<std::int64_t>(n * sizeof(T));
  }

 private:
  std::unique_ptr<Api> api_;
};

/// The bytes of n elements, as an op declares them.
template <class T>
Range range_of(T* memory, std::size_t n, model::Access access) {
  return {reinterpret_cast<const std::byte*>(memory), static_cast<std::int64_t>(n * sizeof(T)), access};
}

/// work() as an op of its own that touches `ranges`.
template <class F>
Result<void> as_op(Api& api, Stream stream, std::int32_t op, const std::vector<Range>& ranges, const F& work) {
  static const std::vector<std::string> kNames{"zero", "one", "two", "three", "four", "five", "six", "seven"};
  const std::string& name = kNames[static_cast<std::size_t>(op) % kNames.size()];
  if (auto begun = api.begin_op(stream, {Rank{0}, OpId{op}, name, ranges}); !begun) return begun.error();
  work();
  return api.end_op(stream);
}

template <class T>
std::string said(const Result<T>& result) {
  return result ? "no error" : to_string(result.error());
}

}  // namespace shard::cuda
