// Nothing that the files say is believed before it is looked at.
#include "profiler/spool/read_spool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "profiler/spool/layout.h"
#include "traces/base/input_file.h"
#include "traces/base/read_file.h"

namespace shard::profiler {
namespace {

/// Texts are longer in no program; a number beyond what texts of that file can have is damage.
constexpr std::uint32_t kLongestName = 1u << 20;

template <class T>
T read_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::int64_t counted(std::uint64_t number) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(number, INT64_MAX / 4));
}

struct FoundBlock {
  std::uint64_t order = 0;
  std::size_t offset = 0;
  std::size_t count = 0;
};

void read_names(std::span<const std::byte> bytes, SpoolContent& content) {
  std::size_t at = 0;
  while (bytes.size() - at >= 8) {
    const auto number = read_at<std::uint32_t>(bytes, at);
    const auto length = read_at<std::uint32_t>(bytes, at + 4);
    at += 8;
    if (length > kLongestName || length > bytes.size() - at) break;
    content.names.try_emplace(number, reinterpret_cast<const char*>(bytes.data() + at), length);
    at += length;
  }
}

}  // namespace

Result<SpoolContent> read_spool(std::span<const std::byte> events, std::span<const std::byte> names,
                                std::string_view label) {
  if (events.size() < kSpoolHeaderBytes || read_at<SpoolHeader>(events, 0).magic != kSpoolMagic)
    return Error{.code = Errc::malformed,
                 .what = "is not what a profiled process leaves",
                 .where = std::string(label) + ": byte 0",
                 .help = "the folder that shardscope profile was given"};
  const auto header = read_at<SpoolHeader>(events, 0);
  SpoolContent content{.process = header.process,
                       .clock_ns = header.clock_ns,
                       .wall_ns = header.wall_ns,
                       .rank = std::max(header.rank, -1),
                       .dropped = counted(header.dropped),
                       .overwritten = counted(header.overwritten),
                       .names_lost = counted(header.names_lost)};
  std::vector<FoundBlock> blocks;
  for (std::size_t offset = kSpoolHeaderBytes; events.size() - offset >= kBlockBytes; offset += kBlockBytes) {
    const auto block = read_at<BlockHeader>(events, offset);
    if (block.state == static_cast<std::uint32_t>(BlockState::never) && block.count == 0) continue;
    if (block.count > kEventsPerBlock || block.state > static_cast<std::uint32_t>(BlockState::free)) {
      content.dropped += 1;
      continue;
    }
    blocks.push_back({block.order, offset, static_cast<std::size_t>(block.count)});
  }
  std::sort(blocks.begin(), blocks.end(), [](const FoundBlock& a, const FoundBlock& b) {
    return std::pair(a.order, a.offset) < std::pair(b.order, b.offset);
  });
  for (const FoundBlock& block : blocks) {
    for (std::size_t i = 0; i < block.count; ++i) {
      const auto event = read_at<Event>(events, block.offset + (i + 1) * sizeof(Event));
      if (event.kind == EventKind::none || static_cast<int>(event.kind) >= kEventKindCount) {
        content.dropped += 1;
      } else {
        content.events.push_back(event);
      }
    }
  }
  read_names(names, content);
  return content;
}

Result<SpoolContent> read_spool(const std::filesystem::path& path) {
  const Result<InputFile> file = InputFile::open(path);
  const auto unreadable = [&](const std::string& why) {
    return Error{.code = Errc::no_input,
                 .what = "the events of a process cannot be read: " + why,
                 .where = path.string(),
                 .help = ""};
  };
  if (!file) return unreadable(file.error().what);
  if (!file->regular()) return unreadable("not a regular file");
  // A process that was killed leaves a file as long as it might have become; only the blocks that it used are read.
  const auto size = static_cast<std::uintmax_t>(file->bytes());
  std::vector<std::byte> events(static_cast<std::size_t>(std::min<std::uintmax_t>(size, kSpoolHeaderBytes)));
  const auto read = [&](std::size_t from) -> Result<void> {
    const Result<std::size_t> got = file->read_at(static_cast<std::int64_t>(from), std::span(events).subspan(from));
    if (!got) return unreadable(got.error().what);
    events.resize(from + *got);
    return {};
  };
  if (Result<void> got = read(0); !got) return got.error();
  if (events.size() == kSpoolHeaderBytes) {
    const std::uintmax_t used = kSpoolHeaderBytes + std::uintmax_t{read_at<SpoolHeader>(events, 0).fresh} * kBlockBytes;
    events.resize(static_cast<std::size_t>(std::min(size, used)));
    if (Result<void> got = read(kSpoolHeaderBytes); !got) return got.error();
  }
  const Result<std::string> names =
      read_file(path.string() + ".names", "names of a profiled process", Bytes{std::int64_t{1} << 30});
  const std::string_view texts = names ? std::string_view(*names) : std::string_view();
  return read_spool(events, std::as_bytes(std::span(texts)), path.string());
}

}  // namespace shard::profiler
