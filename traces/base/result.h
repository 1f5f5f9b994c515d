// Result<T>: a value or an Error written for its reader. Member names follow std::expected (absent from C++20).
#pragma once

#include <cassert>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shard {

/// What kind of fault; each kind has one process exit code (sysexits where it has a name).
enum class Errc {
  check_failed,   ///< 1   a requested check found a difference
  usage,          ///< 2   unknown or unparsable option
  does_not_fit,   ///< 3   the plan needs more memory than there is
  malformed,      ///< 65  a file's content is malformed, truncated or incomplete
  no_input,       ///< 66  a file is absent or unreadable
  unavailable,    ///< 69  something needed is absent: a peer, a driver, a program, a privilege
  internal,       ///< 70  a fault of this program
  cannot_create,  ///< 73  an output cannot be created
  io,             ///< 74  reading or writing failed half-way
  retryable,      ///< 75  a rank died or a deadline passed
  contradiction,  ///< 78  valid values that contradict each other or are not supported
};

[[nodiscard]] constexpr const char* to_string(Errc code) {
  switch (code) {
    case Errc::check_failed: return "check failed";
    case Errc::usage: return "usage";
    case Errc::does_not_fit: return "does not fit";
    case Errc::malformed: return "malformed";
    case Errc::no_input: return "no input";
    case Errc::unavailable: return "unavailable";
    case Errc::internal: return "internal";
    case Errc::cannot_create: return "cannot create";
    case Errc::io: return "input/output";
    case Errc::retryable: return "retryable";
    case Errc::contradiction: return "contradiction";
  }
  return "?";
}

[[nodiscard]] constexpr int exit_code(Errc code) {
  switch (code) {
    case Errc::check_failed: return 1;
    case Errc::usage: return 2;
    case Errc::does_not_fit: return 3;
    case Errc::malformed: return 65;
    case Errc::no_input: return 66;
    case Errc::unavailable: return 69;
    case Errc::internal: return 70;
    case Errc::cannot_create: return 73;
    case Errc::io: return 74;
    case Errc::retryable: return 75;
    case Errc::contradiction: return 78;
  }
  return 70;
}

/// An option that an error names: what read the option adds where its value came from.
struct Mention {
  static constexpr std::size_t kWhere = std::string::npos;
  std::string_view option;  ///< without dashes; a literal's or a table's
  std::size_t end = 0;      ///< where the mention ends in `what`; kWhere: the option is where the error is
};

/// What happened, where (file and line, JSON pointer, rank, op, chunk), and the smallest change that helps.
struct Error {
  Errc code = Errc::internal;
  std::string what;
  std::string where;                ///< may be empty
  std::string help;                 ///< may be empty
  std::vector<Mention> mentions{};  ///< in order of their ends
};

/// "WHERE: WHAT\n  try: HELP", the form every program prints.
[[nodiscard]] inline std::string to_string(const Error& error) {
  std::string text = error.where.empty() ? error.what : error.where + ": " + error.what;
  if (!error.help.empty()) text += "\n  try: " + error.help;
  return text;
}

/// A value or an Error. Reading the wrong side is a broken invariant and asserts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit, as std::expected
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] T& value() & { return assert(has_value()), *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const& { return assert(has_value()), *std::get_if<0>(&state_); }
  [[nodiscard]] T&& value() && { return assert(has_value()), std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const { return assert(!has_value()), *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  [[nodiscard]] bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] const Error& error() const { return assert(error_.has_value()), *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace shard
