// Where the lists and names of a plan lie: written once, then left where they are, and freed together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace shard::plan {

/// A text that somebody keeps: a pool, a model, the program itself. Not made of a string, which may be about to go;
/// where one does stay, std::string_view says so.
class Name : public std::string_view {
 public:
  constexpr Name() = default;
  constexpr Name(const char* text) : std::string_view(text) {}       // NOLINT(google-explicit-constructor)
  constexpr Name(std::string_view text) : std::string_view(text) {}  // NOLINT(google-explicit-constructor)
  Name(const std::string&) = delete;
};

/// Elements in a pool. A view: copies are equal and cheap, and no copy can change what another sees.
template <class T>
class List {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const T&;
  using const_reference = const T&;
  using iterator = const T*;
  using const_iterator = const T*;

  constexpr List() = default;
  constexpr explicit List(std::span<const T> elements) : first_(elements.data()), size_(elements.size()) {}
  [[nodiscard]] constexpr const T* begin() const { return first_; }
  [[nodiscard]] constexpr const T* end() const { return first_ + size_; }
  [[nodiscard]] constexpr const T* data() const { return first_; }
  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }
  [[nodiscard]] constexpr const T& operator[](std::size_t i) const { return first_[i]; }
  [[nodiscard]] constexpr const T& front() const { return first_[0]; }
  [[nodiscard]] constexpr const T& back() const { return first_[size_ - 1]; }
  friend bool operator==(const List& a, const List& b) {
    return (a.first_ == b.first_ && a.size_ == b.size_) || std::ranges::equal(a, b);
  }

 private:
  const T* first_ = nullptr;
  std::size_t size_ = 0;
};

/// Grows only; what is made in it stays valid and in its place as long as the pool lives. Not synchronised: one thread
/// makes a plan, and once it is made all may read it.
class Pool {
 public:
  Pool() = default;
  /// Keeps `other` alive as long as it lives itself: its lists may be used beside those made here, by a plan that goes
  /// on from a common one on a thread of its own.
  explicit Pool(std::shared_ptr<const Pool> other) : other_(std::move(other)) {}

  /// Elements to be written at once, before anybody else sees them. T's destructor never runs.
  template <class T>
  [[nodiscard]] std::span<T> make(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (count == 0) return {};
    T* const first = static_cast<T*>(memory_.allocate(count * sizeof(T), alignof(T)));
    std::uninitialized_value_construct_n(first, count);
    return {first, count};
  }
  template <class T>
  [[nodiscard]] List<T> keep(std::span<const T> elements) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (elements.empty()) return {};
    T* const first = static_cast<T*>(memory_.allocate(elements.size_bytes(), alignof(T)));
    std::uninitialized_copy(elements.begin(), elements.end(), first);
    return List<T>(std::span<const T>(first, elements.size()));
  }
  /// The parts, one behind the other.
  [[nodiscard]] std::string_view text(std::initializer_list<std::string_view> parts) {
    std::size_t size = 0;
    for (std::string_view part : parts) size += part.size();
    char* const first = static_cast<char*>(memory_.allocate(std::max<std::size_t>(size, 1), 1));
    char* at = first;
    for (std::string_view part : parts) at = std::copy(part.begin(), part.end(), at);
    return {first, size};
  }

 private:
  static constexpr std::size_t kFirstBytes = 1 << 16;
  std::shared_ptr<const Pool> other_;
  std::pmr::monotonic_buffer_resource memory_{kFirstBytes};
};

}  // namespace shard::plan
