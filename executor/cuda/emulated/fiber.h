// Contexts of execution on stacks of their own, one thread of the host switching between them.
#pragma once

#include <cstddef>

namespace shard::cuda::emulated {

#if defined(SHARD_THREAD_SANITIZER)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Where execution can go on: a suspended fiber, or the thread that switched into one. Does not move.
class Fiber {
 public:
  /// Of the thread that calls: somewhere to come back to.
  Fiber();
  /// Runs entry(data) when first switched to, on a stack with an unmapped page below it. entry() never returns.
  Fiber(void (*entry)(void* data), void* data);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  /// Never of the one that runs. What is on its stack is not destroyed.
  ~Fiber();

  /// Of what Fiber() made: stands for the thread that calls from now on.
  void adopt_thread();

  /// From this fiber, which runs, to `other`. Returns when somebody switches back, on whichever thread that is; so what
  /// is thread_local is looked up anew by functions that are not inlined.
  void switch_to(Fiber& other);

 private:
  static void start(Fiber& self);
  [[gnu::noinline]] void arrived();

  void* stack_pointer_ = nullptr;  ///< or, where there is no assembly, a ucontext_t
  std::byte* mapping_ = nullptr;
  void (*entry_)(void*) = nullptr;
  void* data_ = nullptr;
  [[maybe_unused]] void* fake_stack_ = nullptr;          // address sanitizer: of this fiber while it is suspended
  [[maybe_unused]] const void* stack_bottom_ = nullptr;  // address sanitizer
  [[maybe_unused]] std::size_t stack_bytes_ = 0;         // address sanitizer
  [[maybe_unused]] void* sanitizer_fiber_ = nullptr;     // thread sanitizer
  static thread_local Fiber* came_from;                  // the fiber that the last switch left
};

/// What the calling fiber did so far is before what another does after happens_after(token). For the thread sanitizer;
/// switches themselves order nothing.
void happens_before(void* token);
void happens_after(void* token);

}  // namespace shard::cuda::emulated
