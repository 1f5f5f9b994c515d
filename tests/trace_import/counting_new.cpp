// Replaces operator new; in a file of its own, so that compilers do not look through it.
#include "tests/trace_import/counting_new.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t live_bytes = 0, peak_bytes = 0;

}  // namespace

namespace shard::test {

std::size_t peak_allocated() {
  return peak_bytes;
}
std::size_t forget_peak() {
  return peak_bytes = live_bytes;
}

}  // namespace shard::test

void* operator new(std::size_t bytes) {
  void* at = std::malloc(bytes);
  if (at == nullptr) throw std::bad_alloc();
  live_bytes += malloc_usable_size(at);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return at;
}
void operator delete(void* at) noexcept {
  if (at != nullptr) live_bytes -= malloc_usable_size(at);
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  operator delete(at);
}
