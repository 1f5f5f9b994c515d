// Every number of a header is held against the bytes that there are.
#include "executor/flight/read_recorder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "traces/base/printable.h"
#include "traces/base/read_file.h"

namespace shard::flight {
namespace {

/// 1024 ranks with all the names that a recorder may have.
constexpr std::int64_t kMostFileBytes = std::int64_t{1024} * (kHeaderBytes + kRingBytes + kMostNameBytes);

bool is_known(const Event& event) {
  return event.kind > EventKind::none && static_cast<int>(event.kind) < kEventKindCount &&
         static_cast<int>(event.phase) < kPhaseCount && static_cast<int>(event.part) < kPartCount &&
         static_cast<int>(event.collective) < kCollectiveCount && event.step >= 0;
}

/// Of the ring as it is: the newest kRingRecords numbers, each in its place.
void read_ring(const std::byte* ring, Recording& into) {
  std::uint64_t newest = 0;
  std::vector<Entry> found;
  for (std::size_t i = 0; i < kRingRecords; ++i) {
    Words words;
    std::memcpy(words.data(), ring + i * sizeof words, sizeof words);
    if (std::ranges::all_of(words, [](std::uint64_t word) { return word == 0; })) continue;
    const auto record = std::bit_cast<Record>(words);
    if (record.check != check_of(words) || record.number == 0 || (record.number - 1) % kRingRecords != i ||
        !is_known(record.event)) {
      ++into.torn;
      continue;
    }
    newest = std::max(newest, record.number);
    found.push_back({record.number, record.event});
  }
  std::ranges::sort(found, {}, &Entry::number);
  std::erase_if(found, [&](const Entry& each) { return newest - each.number >= kRingRecords; });
  into.entries = std::move(found);
}

/// A line that is none is left out.
void read_names(std::string_view names, Recording& into) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find('\n'), names.size());
    const std::string_view line = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    if (line.size() < 5 || line[1] != ' ' || (line[0] != 'o' && line[0] != 'u')) continue;
    std::int32_t number = -1;
    const char* const last = line.data() + line.size();
    const auto [behind, fault] = std::from_chars(line.data() + 2, last, number);
    if (fault != std::errc() || behind == last || *behind != ' ' || number < 0) continue;
    (line[0] == 'o' ? into.op_names : into.unit_names)
        .emplace(number, printable_line(std::string_view(behind + 1, static_cast<std::size_t>(last - behind - 1))));
  }
}

std::string text_of(const std::array<char, 64>& text) {
  return printable_line(std::string_view(text.data(), strnlen(text.data(), text.size())));
}

Seen seen_of(std::uint32_t stored) {
  return stored <= static_cast<std::uint32_t>(Seen::silent) ? static_cast<Seen>(stored) : Seen::nothing;
}

/// The first recorder of `bytes`, and how long it is.
Result<std::pair<Recording, std::size_t>> read_first(std::span<const std::byte> bytes, std::string_view label,
                                                     std::size_t at) {
  const auto malformed = [&](const std::string& what) {
    return Error{Errc::malformed, what, std::string(label) + ", byte " + std::to_string(at), ""};
  };
  Header header;
  if (bytes.size() < kHeaderBytes) return malformed("a flight recorder is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kRecorderMagic) return malformed("not a flight recorder");
  if (header.version != kVersion)
    return Error{Errc::malformed, "a flight recorder of version " + std::to_string(header.version),
                 std::string(label) + ", byte " + std::to_string(at), "read it with the program that wrote it"};
  const std::size_t rest = bytes.size() - kHeaderBytes;
  if (header.records != kRingRecords || rest < kRingBytes || header.name_bytes > kMostNameBytes ||
      header.name_bytes > rest - kRingBytes)
    return malformed("a flight recorder is cut short");
  if (header.world < 1 || header.rank < 0 || header.rank >= header.world)
    return malformed("a flight recorder of a rank that no run has");
  Recording recording{.rank = header.rank,
                      .world = header.world,
                      .process = header.process,
                      .clock_ns = header.clock_ns,
                      .wall_ns = header.wall_ns,
                      .plan_hash = text_of(header.plan_hash),
                      .seen = seen_of(header.seen)};
  read_ring(bytes.data() + kHeaderBytes, recording);
  const auto* const names = reinterpret_cast<const char*>(bytes.data() + kHeaderBytes + kRingBytes);
  read_names(std::string_view(names, header.name_bytes), recording);
  return std::pair(std::move(recording), kHeaderBytes + kRingBytes + static_cast<std::size_t>(header.name_bytes));
}

}  // namespace

Result<std::vector<Recording>> read_recordings(std::span<const std::byte> bytes, std::string_view label) {
  std::vector<Recording> all;
  std::size_t at = 0;
  do {
    auto first = read_first(bytes.subspan(at), label, at);
    if (!first) return first.error();
    at += first->second;
    all.push_back(std::move(first->first));
  } while (at < bytes.size());
  return all;
}

Result<std::vector<Recording>> read_recordings(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  std::error_code fault;
  if (std::filesystem::is_directory(path, fault)) {
    std::filesystem::directory_iterator each(path, fault);
    for (; !fault && each != std::filesystem::directory_iterator(); each.increment(fault))
      if (each->path().extension() == kRecorderEnding) files.push_back(each->path());
    if (files.empty())
      return Error{Errc::no_input, "no flight recorder is in this folder", path.string(),
                   "the folder or file that --recorder named"};
    std::ranges::sort(files);
  } else {
    files.push_back(path);
  }
  std::vector<Recording> all;
  for (const std::filesystem::path& file : files) {
    const Result<std::string> content = read_file(file, "flight recorder", Bytes{kMostFileBytes});
    if (!content) return content.error();
    auto some = read_recordings(std::as_bytes(std::span(*content)), file.string());
    if (!some) return some.error();
    std::ranges::move(*some, std::back_inserter(all));
  }
  std::ranges::stable_sort(all, {}, &Recording::rank);
  return all;
}

std::vector<std::byte> content_of(int descriptor) {
  struct stat status {};
  constexpr auto kMost = static_cast<off_t>(kHeaderBytes + kRingBytes + kMostNameBytes);
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || status.st_size <= 0 || status.st_size > kMost) return {};
  std::vector<std::byte> content(static_cast<std::size_t>(status.st_size));
  std::size_t got = 0;
  while (got < content.size()) {
    const ssize_t bytes = pread(descriptor, content.data() + got, content.size() - got, static_cast<off_t>(got));
    if (bytes <= 0) break;
    got += static_cast<std::size_t>(bytes);
  }
  content.resize(got);
  return content;
}

}  // namespace shard::flight
