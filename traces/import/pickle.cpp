// The pickle machine: a stack, its marks, and the memo.
#include "traces/import/pickle.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace shard::import {
namespace {

constexpr std::int64_t kIntegerLimit = (std::int64_t{1} << 59) - 1;
constexpr std::uint64_t kFreeBytes = 64u << 20;
constexpr std::size_t kLongestLine = 1u << 16;
// A container's place, and what the heap adds to its items.
constexpr std::uint64_t kContainerBytes = 24, kHeapBytes = 16;

}  // namespace

bool PickleReader::run() {
  for (bool stopped = false; !stopped;) {
    at_ = source_.offset();
    const int opcode = source_.get();
    bool good = false;
    if (opcode < 0) {
      error_ = source_.fault().empty() ? "ends before its end mark" : source_.fault();
    } else {
      good = step(opcode, stopped);
    }
    if (!good) {
      close_all();
      return false;
    }
  }
  return true;
}

bool PickleReader::fail(const std::string& why) {
  if (error_.empty()) error_ = why;
  return false;
}

bool PickleReader::charge(std::uint64_t bytes) {
  charged_ += bytes;
  if (charged_ <= kFreeBytes + 4 * source_.offset()) return true;
  full_ = true;
  return fail("builds more than a pickle of this size can hold");
}

bool PickleReader::push(Value value) {
  stack_.push_back(value);
  if (stack_.size() <= stack_peak_) return true;
  stack_peak_ = stack_.size();
  return charge(2 * sizeof(Value));  // once more where close_all() moves it
}

bool PickleReader::push_integer(std::int64_t value) {
  return push({Kind::integer, std::clamp(value, -kIntegerLimit, kIntegerLimit)});
}

bool PickleReader::push_real(double value) {
  reals_.push_back(value);
  return charge(sizeof(double)) && push({Kind::real, static_cast<std::int64_t>(reals_.size() - 1)});
}

bool PickleReader::number(int bytes, std::uint64_t& value) {
  value = 0;
  for (int i = 0; i < bytes; ++i) {
    const int c = source_.get();
    if (c < 0) return fail("ends inside a number");
    value |= static_cast<std::uint64_t>(c) << (8 * i);
  }
  return true;
}

bool PickleReader::push_text(std::uint64_t size) {
  const Text text{characters_.size(), size};
  if (!source_.append(characters_, size)) return fail("ends inside a string");
  texts_.push_back(text);
  return charge(size + sizeof(Text)) && push({Kind::string, static_cast<std::int64_t>(texts_.size() - 1)});
}

bool PickleReader::line(std::string& text) {
  text.clear();
  for (;;) {
    const int c = source_.get();
    if (c == '\n') return true;
    if (c < 0 || text.size() >= kLongestLine) return fail("ends inside a line");
    text += static_cast<char>(c);
  }
}

bool PickleReader::push_line(bool quoted) {
  std::string text;
  if (!line(text)) return false;
  if (quoted && text.size() >= 2) text = text.substr(1, text.size() - 2);
  texts_.push_back({characters_.size(), text.size()});
  characters_ += text;
  return charge(text.size() + sizeof(Text)) && push({Kind::string, static_cast<std::int64_t>(texts_.size() - 1)});
}

bool PickleReader::push_number_line(bool real) {
  std::string text;
  if (!line(text)) return false;
  if (real) {
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return push_real(value);
  }
  if (text == "00" || text == "01") return push({Kind::boolean, text == "01"});
  if (!text.empty() && text.back() == 'L') text.pop_back();
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault == std::errc::result_out_of_range) return push_integer(text[0] == '-' ? -kIntegerLimit : kIntegerLimit);
  if (fault != std::errc{} || end != text.data() + text.size()) return fail("holds a number that is none");
  return push_integer(value);
}

bool PickleReader::push_long(std::uint64_t bytes) {
  std::uint64_t value = 0;
  bool negative = false, large = false;
  for (std::uint64_t i = 0; i < bytes; ++i) {
    const int c = source_.get();
    if (c < 0) return fail("ends inside a number");
    if (i < 8) value |= static_cast<std::uint64_t>(c) << (8 * i);
    negative = (c & 0x80) != 0;
    if (i >= 8 && c != 0 && c != 0xff) large = true;
  }
  if (bytes == 0) return push_integer(0);
  if (bytes < 8 && negative) value |= ~std::uint64_t{0} << (8 * bytes);
  // Beyond 64 bits, or a positive number whose 64th bit is set.
  if (large || (bytes > 8 && !negative && value >> 63 != 0))
    return push_integer(negative ? -kIntegerLimit : kIntegerLimit);
  return push_integer(static_cast<std::int64_t>(value));
}

bool PickleReader::need(std::size_t count) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  return stack_.size() - floor >= count || fail("takes more from its stack than is there");
}

bool PickleReader::pop_mark(std::size_t& from) {
  if (marks_.empty()) return fail("takes a mark that is not there");
  from = marks_.back();
  marks_.pop_back();
  return true;
}

bool PickleReader::push_container(Kind kind, std::size_t from) {
  const std::size_t count = stack_.size() - from;
  if (!charge(kContainerBytes + (count == 0 ? 0 : kHeapBytes + 8 * count))) return false;
  containers_.emplace_back(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
  stack_.resize(from);
  return push({kind, static_cast<std::int64_t>(containers_.size() - 1)});
}

/// Replaces the values of the folded key among the pairs that stand on the stack from `from` on.
void PickleReader::fold(std::size_t from) {
  for (std::size_t i = from; i + 1 < stack_.size(); i += 2) {
    if (text(stack_[i]) != fold_.key) continue;
    const Value whole = stack_[i + 1];
    stack_[i + 1] = fold_.of(whole);
    if (whole.kind() == Kind::list) release(whole);
  }
}

void PickleReader::release(Value value) {
  if (value.kind() != Kind::list && value.kind() != Kind::dict) return;
  std::vector<Value>& items = containers_[static_cast<std::size_t>(value.payload())];
  charged_ -= std::min<std::uint64_t>(charged_, 8 * items.size());
  items = {};
}

/// Moves what stands from `from` on into the container at `target`; the items of an inert one are dropped.
bool PickleReader::append(std::size_t target, std::size_t from) {
  const Value to = stack_[target];
  if (to.kind() == Kind::list || to.kind() == Kind::dict || to.kind() == Kind::object) {
    if (to.kind() == Kind::dict) {
      if ((stack_.size() - from) % 2 == 1) return fail("gives a dict a key without a value");
      if (!fold_.key.empty()) fold(from);
    }
    std::vector<Value>& items = containers_[static_cast<std::size_t>(to.payload())];
    const std::size_t count = stack_.size() - from;
    // A vector that grows has up to twice the room, and its old self beside it for a moment.
    if (!charge(items.empty() ? kHeapBytes + 8 * count : 24 * count)) return false;
    items.insert(items.end(), stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
  } else if (to.kind() != Kind::inert) {
    return fail("adds items to what is no container");
  }
  stack_.resize(from);
  return true;
}

bool PickleReader::get(std::uint64_t index) {
  if (index < memo_.size()) return push(memo_[index]);
  const auto at = far_memo_.find(index);
  return at != far_memo_.end() ? push(at->second) : fail("asks for a memo that it never made");
}

bool PickleReader::put(std::uint64_t index) {
  if (!need(1)) return false;
  if (index <= memo_.size() + 64) {
    if (index >= memo_.size()) {
      if (!charge(8 * (index + 1 - memo_.size()))) return false;
      memo_.resize(index + 1);
    }
    memo_[index] = stack_.back();
    return true;
  }
  far_memo_[index] = stack_.back();
  return charge(64);
}

bool PickleReader::step(int opcode, bool& stopped) {
  std::uint64_t n = 0;
  std::size_t from = 0;
  switch (opcode) {
    case 0x80:  // PROTO
      return number(1, n) && (n <= 5 || fail("is of protocol " + std::to_string(n) + ", newer than 5"));
    case 0x95: return number(8, n);  // FRAME: how much to read at once
    case '.':                        // STOP
      if (!need(1)) return false;
      stopped = true;
      return true;
    case '(':  // MARK
      marks_.push_back(stack_.size());
      return charge(8);
    case '0':  // POP
      if (stack_.size() == (marks_.empty() ? 0 : marks_.back())) return pop_mark(from);
      stack_.pop_back();
      return true;
    case '1':  // POP_MARK
      if (!pop_mark(from)) return false;
      stack_.resize(from);
      return true;
    case '2': return need(1) && push(stack_.back());  // DUP

    case ']':
    case ')':
    case 0x8f: return push_container(Kind::list, stack_.size());
    case '}': return push_container(Kind::dict, stack_.size());
    case 'l':
    case 't':
    case 0x91: return pop_mark(from) && push_container(Kind::list, from);
    case 'd': return pop_mark(from) && push_container(Kind::dict, from);
    case 0x85: return need(1) && push_container(Kind::list, stack_.size() - 1);
    case 0x86: return need(2) && push_container(Kind::list, stack_.size() - 2);
    case 0x87: return need(3) && push_container(Kind::list, stack_.size() - 3);
    case 'a': return need(2) && append(stack_.size() - 2, stack_.size() - 1);
    case 's': return need(3) && append(stack_.size() - 3, stack_.size() - 2);
    case 'e':
    case 'u':
    case 0x90: return pop_mark(from) && (from > 0 || fail("adds items to nothing")) && append(from - 1, from);

    case 'h': return number(1, n) && get(n);
    case 'j': return number(4, n) && get(n);
    case 'q': return number(1, n) && put(n);
    case 'r': return number(4, n) && put(n);
    case 0x94: return put(memo_.size());
    case 'g':
    case 'p': {
      std::string text;
      if (!line(text)) return false;
      const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
      if (fault != std::errc{} || end != text.data() + text.size()) return fail("names a memo by no number");
      return opcode == 'g' ? get(n) : put(n);
    }
    default: return push_scalar(opcode);
  }
}

bool PickleReader::push_scalar(int opcode) {
  std::uint64_t n = 0;
  switch (opcode) {
    case 'N': return push({Kind::none, 0});
    case 0x88: return push({Kind::boolean, 1});
    case 0x89: return push({Kind::boolean, 0});
    case 'I':
    case 'L': return push_number_line(false);
    case 'F': return push_number_line(true);
    case 'J': return number(4, n) && push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(n)));
    case 'K': return number(1, n) && push_integer(static_cast<std::int64_t>(n));
    case 'M': return number(2, n) && push_integer(static_cast<std::int64_t>(n));
    case 0x8a: return number(1, n) && push_long(n);
    case 0x8b: return number(4, n) && push_long(n);
    case 'G': return number(8, n) && push_real(std::bit_cast<double>(__builtin_bswap64(n)));

    case 'S': return push_line(true);
    case 'V': return push_line(false);
    case 'U':
    case 'C':
    case 0x8c: return number(1, n) && push_text(n);
    case 'T':
    case 'B':
    case 'X': return number(4, n) && push_text(n);
    case 0x8d:
    case 0x8e:
    case 0x96: return number(8, n) && push_text(n);
    default: return objects_ == Objects::kept ? keep_object(opcode) : make_object(opcode);
  }
}

/// Closes every container that is still open, innermost first. A dict inside others is an entry that was not complete:
/// it is dropped.
void PickleReader::close_all() {
  if (full_) {
    stack_.clear();
    return;
  }
  charged_ = 0;  // what is moved was charged when it came
  std::size_t from = 0;
  while (!marks_.empty() && pop_mark(from)) {
    from = std::min(from, stack_.size());
    if (from == 0) continue;
    const Kind kind = stack_[from - 1].kind();
    if (kind == Kind::list || (kind == Kind::dict && from == 1)) {
      if (kind == Kind::dict && (stack_.size() - from) % 2 == 1) stack_.pop_back();
      (void)append(from - 1, from);
    } else {
      stack_.resize(from - 1);
    }
  }
  while (stack_.size() > 1) {
    const std::size_t n = stack_.size();
    if (n == 3 && stack_[0].kind() == Kind::dict) {
      (void)append(0, 1);
    } else if (stack_[n - 2].kind() == Kind::list) {
      (void)append(n - 2, n - 1);
    } else {
      stack_.pop_back();
    }
  }
}

std::span<const PickleReader::Value> PickleReader::items(Value value) const {
  if (value.kind() != Kind::list && value.kind() != Kind::dict && value.kind() != Kind::reference) return {};
  return containers_[static_cast<std::size_t>(value.payload())];
}

std::string_view PickleReader::text(Value value) const {
  if (value.kind() != Kind::string) return {};
  const Text& text = texts_[static_cast<std::size_t>(value.payload())];
  return std::string_view(characters_).substr(text.at, text.size);
}

std::optional<std::int64_t> PickleReader::integer(Value value) const {
  if (value.kind() != Kind::integer && value.kind() != Kind::boolean) return std::nullopt;
  return value.payload();
}

std::optional<double> PickleReader::real(Value value) const {
  if (value.kind() != Kind::real) return std::nullopt;
  return reals_[static_cast<std::size_t>(value.payload())];
}

std::optional<PickleReader::Value> PickleReader::find(Value dict, std::string_view key) const {
  if (dict.kind() != Kind::dict) return std::nullopt;
  const std::span<const Value> all = items(dict);
  for (std::size_t i = all.size() / 2; i-- > 0;) {
    if (text(all[2 * i]) == key) return all[2 * i + 1];
  }
  return std::nullopt;
}

}  // namespace shard::import
