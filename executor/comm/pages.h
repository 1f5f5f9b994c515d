// Page-aligned memory of this process that is not resident until touched.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace shard {

/// Anonymous pages: zero on first touch, as in a shared window, and counted only once touched.
class Pages {
 public:
  Pages() = default;
  explicit Pages(std::size_t bytes) : bytes_(bytes == 0 ? 1 : bytes) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) memory_ = nullptr;
  }
  Pages(Pages&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Pages() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  [[nodiscard]] std::byte* get() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace shard
