// Lists of ops that tests make and change by hand. They lie in a pool that lives as long as the program.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "sim/ir/pool.h"

namespace shard::plan {

/// Not synchronised: for one thread.
inline Pool& pool_of_tests() {
  static Pool pool;
  return pool;
}

template <class T>
[[nodiscard]] List<T> list(const std::vector<T>& elements) {
  return pool_of_tests().keep(std::span<const T>(elements));
}
template <class T>
[[nodiscard]] List<T> list(std::initializer_list<T> elements) {
  return list(std::vector<T>(elements));
}

/// A list as a vector; what it is when this goes, the list becomes.
template <class T>
class Edit : public std::vector<T> {
 public:
  explicit Edit(List<T>& list) : std::vector<T>(list.begin(), list.end()), list_(list) {}
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;
  ~Edit() { list_ = list(static_cast<const std::vector<T>&>(*this)); }
  void remove(const T& element) { std::erase(static_cast<std::vector<T>&>(*this), element); }
  void append(List<T> others) { this->insert(this->end(), others.begin(), others.end()); }

 private:
  List<T>& list_;
};
template <class T>
[[nodiscard]] Edit<T> edit(List<T>& list) {
  return Edit<T>(list);
}

}  // namespace shard::plan
