// Reads and prints sizes.
#include "sim/cli/sizes.h"

#include <array>
#include <cctype>
#include <cmath>

#include "sim/model/parameters.h"

namespace shard::cli {
namespace {

struct Suffix {
  std::string_view name;
  std::int64_t factor;
};
constexpr std::array<Suffix, 9> kSuffixes{{{"", 1},
                                           {"k", 1000},
                                           {"m", 1000'000},
                                           {"g", 1000'000'000},
                                           {"t", 1000'000'000'000},
                                           {"ki", std::int64_t{1} << 10},
                                           {"mi", std::int64_t{1} << 20},
                                           {"gi", std::int64_t{1} << 30},
                                           {"ti", std::int64_t{1} << 40}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Error junk(std::string_view text, std::string_view where) {
  return {Errc::usage, "'" + std::string(text) + "' is not a size", std::string(where),
          "a whole number, optionally with k, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of 1024), as in 32Mi"};
}

Error too_large(std::string_view text, std::string_view where) {
  return {Errc::usage, "'" + std::string(text) + "' is too large", std::string(where),
          "a size of at most 2^60 (" + std::to_string(kMaxTotalElems.count()) + ")"};
}

/// value * 10 + digit; false on overflow.
bool append_digit(std::int64_t& value, char digit) {
  return !__builtin_mul_overflow(value, std::int64_t{10}, &value) &&
         !__builtin_add_overflow(value, std::int64_t{digit - '0'}, &value);
}

}  // namespace

std::optional<std::int64_t> power_in(std::string_view text) {
  const std::size_t stars = text.find("**");
  if (stars == std::string_view::npos) return std::nullopt;
  const auto whole = [](std::string_view digits) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    for (const char c : digits)
      if (!is_digit(c) || !append_digit(value, c)) return std::nullopt;
    return digits.empty() ? std::nullopt : std::optional(value);
  };
  const std::optional<std::int64_t> base = whole(text.substr(0, stars));
  const std::optional<std::int64_t> exponent = whole(text.substr(stars + 2));
  if (!base || !exponent || *exponent > 62) return std::nullopt;
  std::int64_t value = 1;
  for (std::int64_t i = 0; i < *exponent; ++i)
    if (__builtin_mul_overflow(value, *base, &value)) return std::nullopt;
  return value;
}

Result<std::int64_t> parse_count(std::string_view text, std::string_view where) {
  if (const std::optional<std::int64_t> power = power_in(text)) {
    if (*power > kMaxTotalElems.count()) return too_large(text, where);
    return *power;
  }
  std::size_t at = 0;
  std::int64_t whole = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    if (!append_digit(whole, text[at])) return too_large(text, where);
  }
  if (at == 0) return junk(text, where);
  std::int64_t fraction = 0;
  std::int64_t scale = 1;
  if (at < text.size() && text[at] == '.') {
    const std::size_t first = ++at;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (at - first == 6) return junk(text, where);  // fraction * factor stays below 2^63
      fraction = fraction * 10 + (text[at] - '0');
      scale *= 10;
    }
    if (at == first) return junk(text, where);
  }
  std::string name;
  for (; at < text.size(); ++at) name += static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.name != name) continue;
    const std::int64_t part = fraction * suffix.factor;
    if (part % scale != 0) {
      return Error{Errc::usage, "'" + std::string(text) + "' is not a whole number", std::string(where),
                   "a number without a fraction, or a larger suffix"};
    }
    std::int64_t count = 0;
    if (__builtin_mul_overflow(whole, suffix.factor, &count) || __builtin_add_overflow(count, part / scale, &count)) {
      return too_large(text, where);
    }
    if (count > kMaxTotalElems.count()) return too_large(text, where);
    return count;
  }
  return junk(text, where);
}

Result<Elems> parse_elems(std::string_view text, std::string_view where) {
  auto count = parse_count(text, where);
  if (!count) return count.error();
  return Elems{*count};
}

Result<Bytes> parse_bytes(std::string_view text, std::string_view where) {
  std::string_view number = text;
  if (!number.empty() && (number.back() == 'B' || number.back() == 'b')) number.remove_suffix(1);
  auto count = parse_count(number, where);
  if (!count) {
    Error error = count.error();
    error.what.replace(1, number.size(), text);  // show what was typed, B included
    return error;
  }
  return Bytes{*count};
}

std::string short_count(std::int64_t count) {
  std::string best = std::to_string(count);
  constexpr std::array<std::string_view, 9> kPrinted{"", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"};
  for (std::size_t i = 1; i < kSuffixes.size(); ++i) {
    if (count == 0 || count % kSuffixes[i].factor != 0) continue;
    std::string text = std::to_string(count / kSuffixes[i].factor).append(kPrinted[i]);
    if (text.size() < best.size()) best = std::move(text);
  }
  return best;
}

std::string mib(Bytes bytes) {
  const bool small = std::abs(static_cast<double>(bytes.count())) < 0.1 * (1 << 20);
  return small ? std::to_string(bytes.count()) + " B" : show_mib(bytes, 1);
}

std::string elements_and_mib(Elems count, std::int64_t bytes_per_element) {
  const std::string plain = with_commas(count.count());
  const std::string brief = short_count(count.count());
  return plain + " elements (" + (brief == std::to_string(count.count()) ? "" : brief + ", ") +
         mib(Bytes{count.count() * bytes_per_element}) + ")";
}

}  // namespace shard::cli
