// Reads and shows the values of options.
#include "sim/cli/values.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "sim/cli/sizes.h"
#include "traces/base/numbers.h"

namespace shard::cli {
namespace {

Error out_of_range(std::string_view text, std::string_view where, const Range& range) {
  std::string help = "a value";
  if (range.least) help += " of at least " + show_value(*range.least);
  if (range.least && range.most) help += " and";
  if (range.most) help += " of at most " + show_value(*range.most);
  return {Errc::usage, "'" + std::string(text) + "' is out of range", std::string(where), help};
}

bool inside(double value, const Range& range) {
  return !(range.least && value < *range.least) && !(range.most && value > *range.most);
}

Result<std::int64_t> read_whole(std::string_view text, std::string_view where, const Range& range) {
  const bool negative = text.starts_with('-') && range.least && *range.least < 0;
  auto count = parse_count(negative ? text.substr(1) : text, where);
  if (!count) {
    Error error = count.error();
    if (text.starts_with('-') && parse_count(text.substr(1), where))
      return out_of_range(text, where, range.least ? range : Range{0, range.most});
    return error;
  }
  const std::int64_t value = negative ? -*count : *count;
  if (!inside(static_cast<double>(value), range)) return out_of_range(text, where, range);
  return value;
}

}  // namespace

Result<void> read_value(std::string_view text, std::string_view, const Range&, std::string& value) {
  value = text;
  return {};
}

Result<void> read_value(std::string_view text, std::string_view where, const Range&, bool& value) {
  if (text == "true" || text == "True" || text == "yes" || text == "on" || text == "1") {
    value = true;
  } else if (text == "false" || text == "False" || text == "no" || text == "off" || text == "0") {
    value = false;
  } else {
    return Error{Errc::usage, "'" + std::string(text) + "' is neither true nor false", std::string(where),
                 "true or false"};
  }
  return {};
}

Result<void> read_value(std::string_view text, std::string_view where, const Range& range, std::int64_t& value) {
  auto read = read_whole(text, where, range);
  if (!read) return read.error();
  value = *read;
  return {};
}

Result<void> read_value(std::string_view text, std::string_view where, const Range& range, int& value) {
  auto read = read_whole(text, where, range);
  if (!read) return read.error();
  if (*read > std::numeric_limits<int>::max() || *read < std::numeric_limits<int>::min()) {
    return out_of_range(text, where, {range.least, double{std::numeric_limits<int>::max()}});
  }
  value = static_cast<int>(*read);
  return {};
}

Result<void> read_value(std::string_view text, std::string_view where, const Range& range, std::uint64_t& value) {
  // Seeds use all 64 bits, which parse_count does not.
  std::uint64_t plain = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), plain);
  if (fault == std::errc{} && end == text.data() + text.size() && !text.empty()) {
    if (!inside(static_cast<double>(plain), range)) return out_of_range(text, where, range);
    value = plain;
    return {};
  }
  auto read = read_whole(text, where, range);
  if (!read) return read.error();
  value = static_cast<std::uint64_t>(*read);
  return {};
}

Result<void> read_value(std::string_view text, std::string_view where, const Range& range, double& value) {
  double read = 0;
  if (const std::optional<std::int64_t> power = power_in(text); power) {
    if (!inside(static_cast<double>(*power), range)) return out_of_range(text, where, range);
    value = static_cast<double>(*power);
    return {};
  }
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (text.empty() || fault != std::errc{} || end != text.data() + text.size() || !std::isfinite(read)) {
    return Error{Errc::usage, "'" + std::string(text) + "' is not a number", std::string(where),
                 "a decimal number, as in 0.1 or 3e-4"};
  }
  if (!inside(read, range)) return out_of_range(text, where, range);
  value = read;
  return {};
}

Result<void> read_value(std::string_view text, std::string_view where, const Range& range, float& value) {
  double read = 0;
  if (Result<void> ok = read_value(text, where, range, read); !ok) return ok;
  value = static_cast<float>(read);
  return {};
}

Result<void> read_value(std::string_view text, std::string_view where, const Range& range, Elems& value) {
  auto read = read_whole(text, where, range);
  if (!read) return read.error();
  value = Elems{*read};
  return {};
}

Result<void> read_value(std::string_view text, std::string_view where, const Range& range, Bytes& value) {
  auto read = parse_bytes(text, where);
  if (!read) return read.error();
  if (!inside(static_cast<double>(read->count()), range)) return out_of_range(text, where, range);
  value = *read;
  return {};
}

std::string show_value(const std::string& value) {
  return value;
}
std::string show_value(bool value) {
  return value ? "true" : "false";
}
std::string show_value(int value) {
  return std::to_string(value);
}
std::string show_value(std::int64_t value) {
  return std::to_string(value);
}
std::string show_value(std::uint64_t value) {
  return std::to_string(value);
}
std::string show_value(double value) {
  return shortest(value);
}
std::string show_value(float value) {
  return shortest(value);
}
std::string show_value(Elems value) {
  return short_count(value.count());
}
std::string show_value(Bytes value) {
  return short_count(value.count()) + "B";
}

}  // namespace shard::cli
