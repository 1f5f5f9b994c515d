// Switching stacks, and telling sanitizers of it.
#include "executor/cuda/emulated/fiber.h"

#include <sys/mman.h>

#include <cassert>
#include <cstdint>
#include <cstring>
#include <new>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(SHARD_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(SHARD_THREAD_SANITIZER)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace shard::cuda::emulated {
namespace {

constexpr std::size_t kPage = 4096;
// Frames under the address sanitizer are several times as large.
#if defined(SHARD_ADDRESS_SANITIZER)
constexpr std::size_t kStackBytes = 256 * 1024;
#else
constexpr std::size_t kStackBytes = 128 * 1024;
#endif

}  // namespace

thread_local Fiber* Fiber::came_from = nullptr;

#if defined(__x86_64__)
extern "C" void shard_switch_stack(void** save, void* load);
// What a call preserves is pushed, the stack changed, and the same popped from the other stack. The control words of
// the floating-point units are the same everywhere and stay.
asm(R"(
.text
.p2align 4
.type shard_switch_stack, @function
shard_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
.size shard_switch_stack, .-shard_switch_stack
.type shard_enter_fiber, @function
shard_enter_fiber:
  movq %r12, %rdi
  xorl %ebp, %ebp
  callq *%r13
  ud2
.size shard_enter_fiber, .-shard_enter_fiber
)");
extern "C" void shard_enter_fiber();
#endif

Fiber::Fiber() {
  adopt_thread();
#if !defined(__x86_64__)
  stack_pointer_ = new ucontext_t;
#endif
}

Fiber::Fiber(void (*entry)(void* data), void* data) : entry_(entry), data_(data) {
  void* const mapping =
      mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping, kPage, PROT_NONE) != 0) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  stack_bottom_ = mapping_ + kPage;
  stack_bytes_ = kStackBytes;
#if defined(SHARD_THREAD_SANITIZER)
  sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
  void (*const first)(Fiber&) = &Fiber::start;
#if defined(__x86_64__)
  // As shard_switch_stack leaves it: r15, r14, r13, r12, rbx, rbp, and where to return to, aligned as a call expects.
  auto* top = reinterpret_cast<std::uint64_t*>(mapping_ + kPage + kStackBytes) - 2;
  *--top = reinterpret_cast<std::uint64_t>(&shard_enter_fiber);
  *--top = 0;                                       // rbp
  *--top = 0;                                       // rbx
  *--top = reinterpret_cast<std::uint64_t>(this);   // r12
  *--top = reinterpret_cast<std::uint64_t>(first);  // r13
  *--top = 0;                                       // r14
  *--top = 0;                                       // r15
  stack_pointer_ = top;
#else
  auto* const context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = mapping_ + kPage;
  context->uc_stack.ss_size = kStackBytes;
  context->uc_link = nullptr;
  const auto word = reinterpret_cast<std::uintptr_t>(this);
  void (*const enter)(unsigned, unsigned) = [](unsigned high, unsigned low) {
    Fiber::start(*reinterpret_cast<Fiber*>((std::uintptr_t{high} << 16 << 16) | low));
  };
  makecontext(context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(word >> 16 >> 16),
              static_cast<unsigned>(word));
  stack_pointer_ = context;
  static_cast<void>(first);
#endif
}

void Fiber::adopt_thread() {
#if defined(SHARD_THREAD_SANITIZER)
  sanitizer_fiber_ = __tsan_get_current_fiber();
#endif
}

Fiber::~Fiber() {
#if defined(SHARD_THREAD_SANITIZER)
  if (mapping_ != nullptr) __tsan_destroy_fiber(sanitizer_fiber_);
#endif
#if !defined(__x86_64__)
  delete static_cast<ucontext_t*>(stack_pointer_);
#endif
#if defined(SHARD_ADDRESS_SANITIZER)
  // Frames that were never left have poisoned their surroundings, for whatever is mapped there next.
  if (mapping_ != nullptr) ASAN_UNPOISON_MEMORY_REGION(mapping_ + kPage, kStackBytes);
#endif
  if (mapping_ != nullptr) munmap(mapping_, kPage + kStackBytes);
}

void Fiber::start(Fiber& self) {
  self.arrived();
  self.entry_(self.data_);
  __builtin_trap();
}

void Fiber::arrived() {
#if defined(SHARD_ADDRESS_SANITIZER)
  // The stack that was left is learnt here: that of a thread is not known before.
  __sanitizer_finish_switch_fiber(fake_stack_, &came_from->stack_bottom_, &came_from->stack_bytes_);
#endif
}

void Fiber::switch_to(Fiber& other) {
  assert(this != &other);
  came_from = this;
#if defined(SHARD_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&fake_stack_, other.stack_bottom_, other.stack_bytes_);
#endif
#if defined(SHARD_THREAD_SANITIZER)
  constexpr unsigned kNoSynchronisation = 1;
  __tsan_switch_to_fiber(other.sanitizer_fiber_, kNoSynchronisation);
#endif
#if defined(__x86_64__)
  shard_switch_stack(&stack_pointer_, other.stack_pointer_);
#else
  swapcontext(static_cast<ucontext_t*>(stack_pointer_), static_cast<ucontext_t*>(other.stack_pointer_));
#endif
  arrived();
}

void happens_before([[maybe_unused]] void* token) {
#if defined(SHARD_THREAD_SANITIZER)
  __tsan_release(token);
#endif
}

void happens_after([[maybe_unused]] void* token) {
#if defined(SHARD_THREAD_SANITIZER)
  __tsan_acquire(token);
#endif
}

}  // namespace shard::cuda::emulated
