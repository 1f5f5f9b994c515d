// Reads the messages of PyTorch's allocator: c10/cuda/CUDACachingAllocator.cpp (1.0: aten/src/THC), by release.
#include "traces/out_of_memory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace shard {
namespace {

constexpr std::string_view kBegin = "Tried to allocate";
/// A message has fewer letters, with a hundred processes.
constexpr std::size_t kMostLetters = 8192;
/// Beyond a device's memory, as 2^34 GiB, which a broken count of a process is printed as.
constexpr double kMostBytes = 1e15;

bool is_blank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// Of a log that broke it into lines: a blank for each run of them.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (!is_blank(c))
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  return line;
}

/// "20.00 MiB" at the beginning of a text, which it is then behind.
std::optional<Bytes> take_size(std::string_view& text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (fault != std::errc() || number < 0) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{" bytes", 1}, {" KiB", 0x1p10}, {" MiB", 0x1p20}, {" GiB", 0x1p30}, {" TiB", 0x1p40}}};
  for (const auto& [unit, bytes] : kUnits) {
    if (!rest.starts_with(unit)) continue;
    if (!(number * bytes <= kMostBytes)) return std::nullopt;
    text = rest.substr(unit.size());
    return Bytes{std::llround(number * bytes)};
  }
  return std::nullopt;
}

/// A size that stands before these words.
std::optional<Bytes> size_before(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view before = text.substr(0, at);
  const std::size_t unit = before.rfind(' ');
  if (unit == std::string_view::npos || unit == 0) return std::nullopt;
  const std::size_t blank = before.rfind(' ', unit - 1);
  before.remove_prefix(blank == std::string_view::npos ? 0 : blank + 1);
  while (before.starts_with('(')) before.remove_prefix(1);
  const std::optional<Bytes> size = take_size(before);
  return size && before.empty() ? size : std::nullopt;
}

std::optional<Bytes> size_behind(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + words.size());
  return take_size(text);
}

std::optional<std::int64_t> number_behind(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const begin = text.data() + at + words.size();
  const auto [end, fault] = std::from_chars(begin, text.data() + text.size(), number);
  return fault == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

/// "Process 81034 has 30.57 GiB memory in use." as often as it stands there; counts that are broken are left out.
std::vector<OutOfMemory::Process> processes_in(std::string_view text) {
  constexpr std::string_view kProcess = "Process ";
  std::vector<OutOfMemory::Process> all;
  for (std::size_t at = 0; (at = text.find(kProcess, at)) != std::string_view::npos; at += kProcess.size()) {
    const std::string_view from = text.substr(at, 120);
    const std::optional<std::int64_t> id = number_behind(from, kProcess);
    const std::size_t has = from.find(" has ");
    if (!id || has == std::string_view::npos) continue;
    std::string_view size = from.substr(has + 5);
    const std::optional<Bytes> in_use = take_size(size);
    if (in_use && size.starts_with(" memory in use")) all.push_back({*id, *in_use});
  }
  return all;
}

/// In a container a process does not know its own number, and is named as any other: the one that holds what the
/// allocator has reserved, by the least.
void find_own(OutOfMemory& message) {
  if (message.in_use || message.form != OutOfMemoryForm::unallocated) return;
  auto own = message.others.end();
  for (auto each = message.others.begin(); each != message.others.end(); ++each)
    if (each->in_use >= message.reserved() && (own == message.others.end() || each->in_use < own->in_use)) own = each;
  if (own == message.others.end()) return;
  message.in_use = own->in_use;
  message.others.erase(own);
}

std::optional<OutOfMemory> read_message(std::string_view text) {
  OutOfMemory message;
  const std::optional<Bytes> asked = size_behind(text, "Tried to allocate ");
  std::optional<Bytes> capacity = size_before(text, " total capacity");
  for (const std::string_view words : {"total capacity of ", "total capacty of "})
    if (!capacity) capacity = size_behind(text, words);
  std::optional<Bytes> free = size_before(text, " is free");
  if (!free) free = size_before(text, " free;");
  std::optional<Bytes> allocated = size_before(text, " is allocated by PyTorch");
  if (!allocated) allocated = size_before(text, " already allocated");
  std::optional<Bytes> idle = size_before(text, " is reserved by PyTorch but unallocated");
  message.form = OutOfMemoryForm::unallocated;
  if (const auto reserved = size_before(text, " reserved in total by PyTorch"); !idle && reserved && allocated) {
    message.form = OutOfMemoryForm::reserved;
    idle = std::max(*reserved, *allocated) - *allocated;
  }
  if (const auto cached = size_before(text, " cached"); !idle && cached) {
    message.form = OutOfMemoryForm::cached;
    idle = cached;
  }
  if (!asked || !capacity || !free || !allocated || !idle) return std::nullopt;
  message.device = number_behind(text, "GPU ");
  message.asked = *asked;
  message.capacity = *capacity;
  message.free = *free;
  message.allocated = *allocated;
  message.unallocated = *idle;
  message.private_pools = size_before(text, " allocated in private pools");
  message.allowed = size_before(text, " allowed;");
  message.in_use = size_behind(text, "this process has ");
  message.others = processes_in(text);
  find_own(message);
  return message;
}

Bytes at_least_none(Bytes bytes) {
  return std::max(bytes, Bytes{0});
}

}  // namespace

const char* to_string(OutOfMemoryForm form) {
  switch (form) {
    case OutOfMemoryForm::cached: return "PyTorch 1.0 to 1.3";
    case OutOfMemoryForm::reserved: return "PyTorch 1.4 to 2.0";
    case OutOfMemoryForm::unallocated: return "PyTorch 2.1 or later";
  }
  return "?";
}

const char* to_string(OutOfMemoryCause cause) {
  switch (cause) {
    case OutOfMemoryCause::full: return "full";
    case OutOfMemoryCause::fragmentation: return "fragmentation";
    case OutOfMemoryCause::other_processes: return "other_processes";
    case OutOfMemoryCause::limit: return "limit";
    case OutOfMemoryCause::refused: return "refused";
  }
  return "?";
}

std::optional<Bytes> OutOfMemory::outside() const {
  if (!in_use) return std::nullopt;
  return at_least_none(*in_use - reserved());
}

Bytes OutOfMemory::elsewhere() const {
  return at_least_none(capacity - free - std::max(in_use.value_or(Bytes{0}), reserved()));
}

Result<OutOfMemory> read_out_of_memory(std::string_view text, const std::string& where) {
  std::optional<OutOfMemory> first;
  std::int64_t count = 0;
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos;) {
    const std::size_t next = text.find(kBegin, at + kBegin.size());
    const std::size_t length = std::min(next == std::string_view::npos ? text.size() - at : next - at, kMostLetters);
    const std::optional<OutOfMemory> message = read_message(on_one_line(text.substr(at, length)));
    if (message) ++count;
    if (!first) first = message;
    at = next;
  }
  if (!first)
    return Error{
        Errc::malformed, "no out-of-memory message of PyTorch is in it that is whole", where,
        R"(all of the message: "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of )"
        R"(... is reserved by PyTorch but unallocated.", or that of older releases, within a log or by itself)"};
  first->message_count = count;
  return *first;
}

OutOfMemoryCause cause_of(const OutOfMemory& message) {
  // In percent of the device: less than the first every context and display takes, less than the second lies idle in
  // any allocator, and who got it would be out of memory a moment later.
  constexpr std::int64_t kNotableElsewhere = 10;
  constexpr std::int64_t kNotableIdle = 3;
  const auto is_notable = [&](Bytes bytes, std::int64_t percent) { return bytes * 100 >= message.capacity * percent; };
  const Bytes asked = message.asked;
  const Bytes idle = message.unallocated;
  const Bytes elsewhere = message.elsewhere();
  if (message.allowed && message.free >= asked && message.reserved() + asked > *message.allowed && idle < asked)
    return OutOfMemoryCause::limit;
  if (message.free >= asked && idle < asked) return OutOfMemoryCause::refused;
  const bool others_do = is_notable(elsewhere, kNotableElsewhere) && elsewhere + message.free >= asked;
  if (others_do && elsewhere > message.reserved()) return OutOfMemoryCause::other_processes;
  if (is_notable(idle, kNotableIdle) && idle + message.free >= asked) return OutOfMemoryCause::fragmentation;
  return others_do ? OutOfMemoryCause::other_processes : OutOfMemoryCause::full;
}

}  // namespace shard
