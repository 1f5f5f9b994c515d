// A kernel's launch on the emulated device: arguments looked at, the kernel put on its stream.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>

#include "executor/cuda/api/api.h"

namespace shard::cuda {
struct Launch;
}

namespace shard::cuda::emulated {

/// A stream, and the function that launches a kernel on it, which is what the kernel is called in a recording.
struct LaunchFrom {
  // NOLINTNEXTLINE(google-explicit-constructor): launches say their stream
  LaunchFrom(Stream on, const char* by = __builtin_FUNCTION()) : stream(on), function(by) {}
  Stream stream;
  const char* function;
};

class LaunchCall {
 public:
  LaunchCall(const LaunchFrom& from, const Launch& sizes);

  /// The value as a kernel gets it: a pointer of the device becomes one that can be followed.
  template <class T>
  T argument(T value) {
    ++arguments_;
    if constexpr (std::is_pointer_v<T>) {
      value = static_cast<T>(const_cast<void*>(translated(value)));
    } else if constexpr (requires { value.member.size(); }) {
      for (auto& each : value.member) each = static_cast<std::remove_reference_t<decltype(each)>>(translated(each));
    } else {
      static_assert(std::is_trivially_copyable_v<T>);  // pointers inside stay the device's, which no host can follow
    }
    return value;
  }

  /// `thread` is called once for each thread. Nothing is enqueued where an argument was refused.
  void enqueue(std::function<void()> thread);

 private:
  const void* translated(const void* pointer);

  LaunchFrom from_;
  const Launch* sizes_;
  int arguments_ = 0;
};

}  // namespace shard::cuda::emulated
