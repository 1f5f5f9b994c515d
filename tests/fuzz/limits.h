// What a reader may cost: 64 MiB + 4 times its (decompressed) input, and one second. Aborts where it costs more, so
// that a fuzzer stops there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

// Of sanitizer builds only; elsewhere these are null and memory is not counted.
extern "C" {
__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                                                    void (*)(const volatile void*));
__attribute__((weak)) std::size_t __sanitizer_get_allocated_size(const volatile void*);
}

namespace shard::fuzz {

/// Counts while it lives; one at a time. Frees of older memory do not make up for what is allocated.
class Limits {
 public:
  explicit Limits(std::size_t input_bytes) : begin_(seconds()) {
    static const bool installed = install();
    (void)installed;
    live_ = 0;
    limit_ = static_cast<std::int64_t>((std::size_t{64} << 20) + 4 * input_bytes);
    counting_ = true;
  }
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
  ~Limits() {
    counting_ = false;
    // Processor time: a busy machine is no reader's fault.
    if (const double took = seconds() - begin_; took > 1) fail("a reader took %.2f s\n", took);
  }

 private:
  static bool install() {
    return __sanitizer_install_malloc_and_free_hooks != nullptr &&
           __sanitizer_install_malloc_and_free_hooks(&allocated, &freed) != 0;
  }
  static void allocated(const volatile void*, std::size_t bytes) {
    if (!counting_) return;
    const std::int64_t live = live_ += static_cast<std::int64_t>(bytes);
    if (live > limit_) {
      counting_ = false;  // what follows allocates too
      fail("a reader allocated more than %.1f MiB\n", static_cast<double>(limit_) / (1 << 20));
    }
  }
  static void freed(const volatile void* at) {
    if (!counting_ || at == nullptr) return;
    const auto bytes = static_cast<std::int64_t>(__sanitizer_get_allocated_size(at));
    if (std::int64_t live = live_; live >= bytes) live_ = live - bytes;
  }
  [[noreturn]] static void fail(const char* what, double value) {
    std::fprintf(stderr, what, value);
    std::abort();
  }
  static double seconds() {
    std::timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  static inline std::atomic<std::int64_t> live_ = 0, limit_ = 0;
  static inline std::atomic<bool> counting_ = false;
  double begin_;
};

}  // namespace shard::fuzz
