// How the text of one option becomes a value: one read_value() and one show_value() for each type an option may have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::cli {

/// Bounds of a numeric option, both inclusive.
struct Range {
  std::optional<double> least;
  std::optional<double> most;
};

/// Each reads `text` into `value`; on Errc::usage, which names `where`, `value` is unchanged. Whole numbers and sizes
/// take the suffixes of sizes.h and are not negative unless the range says so. bool: true/false, yes/no, on/off, 1/0.
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&, std::string& value);
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&, bool& value);
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&, int& value);
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&, std::int64_t& value);
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&,
                                      std::uint64_t& value);
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&, double& value);
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&, float& value);
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&, Elems& value);
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range&, Bytes& value);

template <class T>
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range& range,
                                      std::optional<T>& value) {
  T read{};
  auto done = read_value(text, where, range, read);
  if (done) value = std::move(read);
  return done;
}

/// Appends: the option may be given several times.
template <class T>
[[nodiscard]] Result<void> read_value(std::string_view text, std::string_view where, const Range& range,
                                      std::vector<T>& value) {
  T read{};
  auto done = read_value(text, where, range, read);
  if (done) value.push_back(std::move(read));
  return done;
}

/// The default as help prints it; empty for none.
[[nodiscard]] std::string show_value(const std::string& value);
[[nodiscard]] std::string show_value(bool value);
[[nodiscard]] std::string show_value(int value);
[[nodiscard]] std::string show_value(std::int64_t value);
[[nodiscard]] std::string show_value(std::uint64_t value);
[[nodiscard]] std::string show_value(double value);
[[nodiscard]] std::string show_value(float value);
[[nodiscard]] std::string show_value(Elems value);
[[nodiscard]] std::string show_value(Bytes value);
template <class T>
[[nodiscard]] std::string show_value(const std::optional<T>& value) {
  return value ? show_value(*value) : std::string();
}
template <class T>
[[nodiscard]] std::string show_value(const std::vector<T>& value) {
  std::string text;
  for (const T& item : value) text.append(text.empty() ? "" : " ").append(show_value(item));
  return text;
}

/// What kind of value an option has: what data about it says.
template <class T>
inline constexpr const char* kind_of_value = "text";
template <>
inline constexpr const char* kind_of_value<int> = "integer";
template <>
inline constexpr const char* kind_of_value<std::int64_t> = "integer";
template <>
inline constexpr const char* kind_of_value<std::uint64_t> = "integer";
template <>
inline constexpr const char* kind_of_value<double> = "number";
template <>
inline constexpr const char* kind_of_value<float> = "number";
template <class T>
inline constexpr const char* kind_of_value<std::optional<T>> = kind_of_value<T>;
template <class T>
inline constexpr const char* kind_of_value<std::vector<T>> = kind_of_value<T>;

template <class T>
inline constexpr bool takes_several = false;
template <class T>
inline constexpr bool takes_several<std::vector<T>> = true;

}  // namespace shard::cli
