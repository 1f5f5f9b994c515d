// Does a cut, damaged, foreign or newer file give what is sound in it and say what is not, and never crash?
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <numeric>
#include <set>
#include <vector>

#include "tests/daily.h"
#include "tests/traces/sample_trace.h"
#include "traces/columns.h"
#include "traces/frame.h"

namespace shard {
namespace {

using sample::read_bytes;
using sample::rows;
using sample::TempFile;

std::vector<std::byte> small_trace() {
  const TempFile file;
  sample::write_random(file.path(), 7, {.spans = 20, .memory_events = 10, .others = 1, .flush_every = 16});
  return read_bytes(file.path());
}

Result<Trace> load_bytes(const std::vector<std::byte>& bytes) {
  return load(std::span<const std::byte>(bytes));
}

template <class T>
bool is_prefix(const std::vector<T>& part, const std::vector<T>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

/// Offsets of all frames of an undamaged file.
std::vector<std::uint64_t> frame_offsets(const std::vector<std::byte>& bytes) {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = sst::kFileHeaderBytes; at < bytes.size();) {
    sst::FrameHeader header;
    EXPECT_TRUE(sst::unpack(std::span<const std::byte, 56>(bytes.data() + at, 56), header));
    offsets.push_back(at);
    at += sst::kFrameHeaderBytes + sst::area_bytes(header.raw_bytes, header.stored_bytes);
  }
  return offsets;
}

/// One frame as bytes, uncompressed.
std::vector<std::byte> frame(std::uint16_t type, std::uint32_t count, std::uint32_t track,
                             std::span<const std::byte> payload, std::uint16_t version = sst::kFrameVersion) {
  sst::FrameHeader header;
  header.type = type;
  header.version = version;
  header.count = count;
  header.track = track;
  header.raw_bytes = header.stored_bytes = static_cast<std::uint32_t>(payload.size());
  std::vector<std::byte> bytes(sst::kFrameHeaderBytes + sst::area_bytes(header.raw_bytes, header.stored_bytes));
  std::copy(payload.begin(), payload.end(), bytes.begin() + sst::kFrameHeaderBytes);
  header.payload_crc = sst::checksum(std::span<const std::byte>(bytes).subspan(sst::kFrameHeaderBytes));
  sst::pack(header, std::span<std::byte, 56>(bytes.data(), 56));
  return bytes;
}

/// A file header and nothing else.
std::vector<std::byte> bare_file() {
  const TempFile file;
  EXPECT_TRUE(Writer::create(file.path(), {}));
  std::vector<std::byte> bytes = read_bytes(file.path());
  bytes.resize(sst::kFileHeaderBytes);
  return bytes;
}

std::vector<std::byte> operator+(std::vector<std::byte> a, const std::vector<std::byte>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Cut, AtEveryByteKeepsExactlyTheCompleteFrames) {
  const std::vector<std::byte> bytes = small_trace();
  const Result<Trace> whole = load_bytes(bytes);
  ASSERT_TRUE(whole);
  ASSERT_TRUE(whole->complete());
  const std::vector<std::uint64_t> offsets = frame_offsets(bytes);
  std::size_t spans_before = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<Trace> trace = load_bytes(cut);
    if (length < sst::kFileHeaderBytes) {
      ASSERT_FALSE(trace);
      EXPECT_EQ(trace.error().code, Errc::malformed);
      EXPECT_NE(trace.error().where.find("byte"), std::string::npos);
      continue;
    }
    ASSERT_TRUE(trace) << length;
    ASSERT_EQ(trace->truncated.size(), 1u) << length;
    // The note names the first byte of the first frame that is not complete.
    const auto next = std::upper_bound(offsets.begin(), offsets.end(), length);
    const bool between_frames = std::find(offsets.begin(), offsets.end(), length) != offsets.end();
    EXPECT_EQ(trace->truncated[0].offset, between_frames ? length : *std::prev(next)) << length;
    EXPECT_TRUE(is_prefix(rows(trace->spans), rows(whole->spans))) << length;
    EXPECT_TRUE(is_prefix(rows(trace->memory), rows(whole->memory))) << length;
    EXPECT_TRUE(is_prefix(trace->names, whole->names)) << length;
    EXPECT_GE(trace->spans.size(), spans_before);
    spans_before = trace->spans.size();
  }
  EXPECT_EQ(spans_before, whole->spans.size());
}

TEST(Flipped, EveryBitIsNoticedAndCostsAtMostOneFrame) {
  std::vector<std::byte> bytes = small_trace();
  const Result<Trace> whole = load_bytes(bytes);
  ASSERT_TRUE(whole);
  std::size_t most_rows = 0;  // of one frame
  for (const std::uint64_t at : frame_offsets(bytes)) {
    most_rows = std::max<std::size_t>(most_rows, sst::get<std::uint32_t>(std::span<const std::byte>(bytes), at + 12));
  }
  std::set<std::uint64_t> frames_with_tables;  // their loss also takes frames that refer to them
  for (const std::uint64_t at : frame_offsets(bytes)) {
    if (sst::get<std::uint16_t>(std::span<const std::byte>(bytes), at + 4) <= 3) frames_with_tables.insert(at);
  }
  std::vector<std::size_t> bits(bytes.size() * 8);
  std::iota(bits.begin(), bits.end(), std::size_t{0});
  for (const std::size_t bit : daily::part_of(bits, 4)) {
    bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    const Result<Trace> trace = load_bytes(bytes);
    if (bit / 8 < sst::kFileHeaderBytes) {
      ASSERT_FALSE(trace) << bit;
      ASSERT_EQ(trace.error().code, Errc::malformed);
    } else {
      ASSERT_TRUE(trace) << bit;
      ASSERT_FALSE(trace->complete()) << bit;
      const std::uint64_t at = trace->truncated[0].offset;
      ASSERT_LE(at, bit / 8);
      if (!frames_with_tables.contains(at)) {
        ASSERT_EQ(trace->truncated.size(), 1u) << bit;
        ASSERT_GE(trace->spans.size() + trace->memory.size() + most_rows, whole->spans.size() + whole->memory.size());
      }
    }
    bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
  }
}

TEST(Newer, T10_UnknownTypesAndVersionsAreSkippedAndCounted) {
  std::vector<std::byte> bytes = small_trace();
  const Result<Trace> whole = load_bytes(bytes);
  ASSERT_TRUE(whole);
  const std::vector<std::byte> payload(13, std::byte{1});
  const std::vector<std::byte> news =
      frame(99, 3, 0, payload) + frame(static_cast<std::uint16_t>(sst::FrameType::spans), 1, 0, payload, 5);
  // A second writer knows the frames that it writes: END counts them.
  bytes.resize(frame_offsets(bytes).back());
  const Result<Trace> trace = load_bytes(bytes + news);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->skipped_frame_count, 2);
  EXPECT_EQ(rows(trace->spans), rows(whole->spans));
}

TEST(Newer, T2_MinorVersionLoadsMajorVersionIsRefused) {
  std::vector<std::byte> bytes = small_trace();
  const auto seal = [&] {
    sst::put(std::span<std::byte>(bytes), 60, sst::checksum(std::span<const std::byte>(bytes).first(60)));
  };
  sst::put(std::span<std::byte>(bytes), 10, std::uint16_t{sst::kMinor + 1});
  seal();
  const Result<Trace> minor = load_bytes(bytes);
  ASSERT_TRUE(minor);
  EXPECT_TRUE(minor->complete());
  EXPECT_EQ(minor->format_minor, sst::kMinor + 1);
  sst::put(std::span<std::byte>(bytes), 8, std::uint16_t{2});
  seal();
  const Result<Trace> major = load_bytes(bytes);
  ASSERT_FALSE(major);
  EXPECT_EQ(major.error().code, Errc::malformed);
  EXPECT_EQ(major.error().where, "trace: byte 8");
  EXPECT_EQ(major.error().help, "use a newer shardscope");
}

TEST(Hostile, T6_AFrameCannotPromiseMoreThan64TimesItsLength) {
  sst::FrameHeader header;
  header.type = static_cast<std::uint16_t>(sst::FrameType::counters);
  header.codec = 1;
  header.count = 65'536;
  header.raw_bytes = 65'536 * 24;
  header.stored_bytes = 100;
  std::vector<std::byte> bytes(sst::kFrameHeaderBytes + 104);
  sst::pack(header, std::span<std::byte, 56>(bytes.data(), 56));
  const Result<Trace> trace = load_bytes(bare_file() + bytes);
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->truncated.size(), 1u);
  EXPECT_EQ(trace->truncated[0].offset, 64u);
  EXPECT_EQ(trace->counters.capacity(), 0u);
}

TEST(Hostile, T5_SizesThatContradictEachOther) {
  const std::vector<std::byte> payload(48);
  const auto type = static_cast<std::uint16_t>(sst::FrameType::counters);
  const Result<Trace> trace = load_bytes(bare_file() + frame(type, 3, 0, payload) + frame(type, 2, 0, payload));
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->truncated.size(), 1u);
  EXPECT_EQ(trace->truncated[0].offset, 64u);
  EXPECT_EQ(trace->counters.size(), 2u);
}

/// A TRACKS frame with one memory track of rank 0.
std::vector<std::byte> memory_track(std::uint32_t first_id) {
  sst::ColumnWriter payload;
  payload.scalar(std::int32_t{0});
  payload.scalar(std::uint8_t{1});
  payload.scalar(std::uint8_t{0});
  payload.scalar(std::uint8_t{0});
  payload.scalar(std::uint8_t{0});
  payload.text("");
  return frame(static_cast<std::uint16_t>(sst::FrameType::tracks), 1, first_id, payload.bytes());
}

/// A MEMORY frame of one acquisition.
std::vector<std::byte> acquisition(std::int64_t live_before, std::int64_t bytes, std::uint8_t category = 0) {
  sst::ColumnWriter payload;
  payload.scalar(live_before);
  payload.scalar(std::int32_t{1});
  payload.scalar(std::int64_t{0});
  payload.scalar(bytes);
  payload.scalar(category);
  payload.scalar(std::int32_t{1});
  payload.scalar(std::int64_t{5});
  payload.scalar(std::uint8_t{0});
  payload.scalar(std::int32_t{0});
  payload.scalar(std::int32_t{0});
  return frame(static_cast<std::uint16_t>(sst::FrameType::memory), 1, 0, payload.bytes());
}

TEST(Hostile, T8_TracksMustBeDefinedFirstAndIdsCannotRunAway) {
  const Result<Trace> undefined = load_bytes(bare_file() + acquisition(0, 10));
  ASSERT_TRUE(undefined);
  EXPECT_EQ(undefined->truncated.at(0).offset, 64u);
  EXPECT_TRUE(undefined->memory.empty());
  const Result<Trace> far = load_bytes(bare_file() + memory_track(0x7fff'ffff));
  ASSERT_TRUE(far);
  EXPECT_EQ(far->truncated.at(0).offset, 64u);
  EXPECT_TRUE(far->tracks.empty());
}

TEST(Hostile, T9_AnUnknownCategoryCostsItsFrame) {
  const Result<Trace> trace = load_bytes(bare_file() + memory_track(0) + acquisition(0, 10, 9) + acquisition(0, 10, 8));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->truncated.size(), 1u);
  EXPECT_EQ(trace->memory.size(), 1u);
}

TEST(Hostile, T11_TheRunningTotalIsChecked) {
  const auto offset_of_second = 64 + memory_track(0).size() + acquisition(0, 10).size();
  const Result<Trace> right = load_bytes(bare_file() + memory_track(0) + acquisition(0, 10) + acquisition(10, 10));
  ASSERT_TRUE(right);
  EXPECT_EQ(right->memory.size(), 2u);
  const Result<Trace> wrong = load_bytes(bare_file() + memory_track(0) + acquisition(0, 10) + acquisition(11, 10));
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->memory.size(), 1u);
  EXPECT_EQ(wrong->truncated.at(0).offset, offset_of_second);
}

/// A UNITS frame of one unit.
std::vector<std::byte> unit(std::uint32_t first_id, std::int64_t elements, std::int64_t bytes, const char* name) {
  sst::ColumnWriter payload;
  payload.scalar(elements);
  payload.scalar(bytes);
  payload.text(name);
  return frame(static_cast<std::uint16_t>(sst::FrameType::units), 1, first_id, payload.bytes());
}

TEST(Tables, T7_ALostUnitShiftsNoOther) {
  const Result<Trace> trace = load_bytes(bare_file() + unit(0, 1, 4, "a") + unit(2, 3, 12, "c"));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->header.units, (std::vector<UnitInfo>{{"a", 1, 4}, {}, {"c", 3, 12}}));
}

TEST(Tables, T8_UnitsComeInOrderAndTheirIdsCannotRunAway) {
  const Result<Trace> trace =
      load_bytes(bare_file() + unit(0, 1, 4, "a") + unit(0, 2, 8, "again") + unit(0x7fff'ffff, 3, 12, "far"));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->header.units, (std::vector<UnitInfo>{{"a", 1, 4}}));
  EXPECT_EQ(trace->truncated.size(), 2u);
}

TEST(Tables, T9_UnitsHaveNoNegativeSizes) {
  const Result<Trace> trace = load_bytes(bare_file() + unit(0, -1, 4, "a") + unit(0, 1, -4, "b") + unit(0, 1, 4, "c"));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->header.units, (std::vector<UnitInfo>{{"c", 1, 4}}));
  EXPECT_EQ(trace->truncated.size(), 2u);
}

/// A table's frame of entries that are numbers alone.
std::vector<std::byte> entry(sst::FrameType type, std::uint32_t first_id, const std::vector<std::int32_t>& numbers) {
  sst::ColumnWriter payload;
  for (const std::int32_t number : numbers) payload.scalar(number);
  return frame(static_cast<std::uint16_t>(type), 1, first_id, payload.bytes());
}

TEST(Stacks, T8_FramesOfNamesThatAreNotDefinedHaveNone) {
  const Result<Trace> trace = load_bytes(bare_file() + entry(sst::FrameType::frames, 0, {7, -3, 12}) +
                                         entry(sst::FrameType::frames, 2, {0, 0, 1}));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->frames, (std::vector<StackFrame>{{NameId{}, NameId{}, 12}, {}, {NameId{}, NameId{}, 1}}));
}

TEST(Stacks, T8_NoStackIsItsOwnCaller) {
  const auto stack = [](std::uint32_t id, std::int32_t frame, std::int32_t caller) {
    return entry(sst::FrameType::stacks, id, {frame, caller});
  };
  const Result<Trace> trace = load_bytes(bare_file() + entry(sst::FrameType::frames, 0, {-1, -1, 1}) + stack(0, 0, 0) +
                                         stack(1, 5, 0) + stack(2, 0, 3) + stack(4, 0, 2) + stack(1, 0, 0));
  ASSERT_TRUE(trace);
  EXPECT_EQ(
      trace->stacks,
      (std::vector<StackNode>{
          {FrameId{0}, StackId{}}, {FrameId{}, StackId{0}}, {FrameId{0}, StackId{}}, {}, {FrameId{0}, StackId{2}}}));
  EXPECT_EQ(trace->truncated.size(), 1u) << "the second one of id 1";
}

TEST(Stacks, T9_NoLineIsNegative) {
  const Result<Trace> trace = load_bytes(bare_file() + entry(sst::FrameType::frames, 0, {-1, -1, -1}));
  ASSERT_TRUE(trace);
  EXPECT_TRUE(trace->frames.empty());
  EXPECT_EQ(trace->truncated.size(), 1u);
}

/// A CAPACITIES frame of one memory.
std::vector<std::byte> capacity(std::uint8_t memory, std::int32_t sharers, std::int64_t bytes) {
  sst::ColumnWriter payload;
  payload.scalar(std::int32_t{-1});
  payload.scalar(memory);
  payload.scalar(sharers);
  payload.scalar(bytes);
  return frame(static_cast<std::uint16_t>(sst::FrameType::capacities), 1, 0, payload.bytes());
}

TEST(Tables, T9_CapacitiesAreOfMemoriesThatThereAre) {
  const Result<Trace> trace =
      load_bytes(bare_file() + capacity(4, 1, 8) + capacity(1, 0, 8) + capacity(1, 1, -8) + capacity(1, 2, 8));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->header.capacities, (std::vector<MemoryCapacity>{{Rank{}, Memory::host, 2, 8}}));
  EXPECT_EQ(trace->truncated.size(), 3u);
}

TEST(Tables, OfEntriesThatAreNotThereAreLeftOut) {
  sst::ColumnWriter payload;
  payload.scalar(std::uint8_t{1});
  payload.text("stage");
  payload.text("3");
  const auto type = static_cast<std::uint16_t>(sst::FrameType::strategy);
  const std::span<const std::byte> whole = payload.bytes();
  const Result<Trace> trace =
      load_bytes(bare_file() + frame(type, 0xffff'ffff, 0, whole) + frame(type, 60'000, 0, whole) +
                 frame(type, 1, 0, whole.first(whole.size() - 1)) + frame(type, 1, 0, whole));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->header.strategy, (std::vector<StrategyField>{{"stage", "3", true}}));
  EXPECT_EQ(trace->truncated.size(), 3u);
}

TEST(Tables, AreNeverCompressed) {
  std::vector<std::byte> bytes = unit(0, 1, 4, "a");
  bytes[8] = std::byte{1};
  sst::FrameHeader header;
  ASSERT_TRUE(sst::unpack(std::span<const std::byte, 56>(unit(0, 1, 4, "a").data(), 56), header));
  header.codec = 1;
  sst::pack(header, std::span<std::byte, 56>(bytes.data(), 56));
  const Result<Trace> trace = load_bytes(bare_file() + bytes);
  ASSERT_TRUE(trace);
  EXPECT_TRUE(trace->header.units.empty());
  EXPECT_EQ(trace->truncated.size(), 1u);
}

TEST(Unreadable, GivesNoInput) {
  for (const char* path : {"/nonexistent/trace.sst", "/"}) {
    const Result<Trace> trace = load(std::filesystem::path(path));
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().code, Errc::no_input);
    EXPECT_EQ(trace.error().where, path);
  }
}

TEST(Foreign, IsRefusedAtItsFirstByte) {
  const TempFile file(".txt");
  sample::write_bytes(file.path(), std::vector<std::byte>(1000, std::byte{'x'}));
  for (const std::filesystem::path& path : {file.path(), std::filesystem::path("/dev/zero")}) {
    const Result<Trace> trace = load(path);
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().code, Errc::malformed);
    EXPECT_EQ(trace.error().where, path.string() + ": byte 0");
  }
}

TEST(Output, ThatCannotBeCreatedSaysSo) {
  const Result<Writer> writer = Writer::create("/nonexistent/folder/trace.sst", {});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Errc::cannot_create);
  EXPECT_EQ(writer.error().help, "mkdir -p /nonexistent/folder");
}

TEST(Output, FullDiskAtTheStart) {
  const Result<Writer> writer = Writer::create("/dev/full", {});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Errc::io);
}

/// Runs `body` in a process of its own and returns how it ended.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Output, FullDiskHalfWayIsReportedOnceAndLeavesALoadableFile) {
  const TempFile file;
  const int status = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20'000, 20'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Result<Writer> writer = Writer::create(file.path(), {});
    if (!writer) ::_exit(1);
    for (int i = 0; i < 5000; ++i) {
      writer->add(Counter{.rank = Rank{0}, .time_ns = i, .value = 1.0 / i});
      if (i % 100 == 99 && !writer->flush()) ::_exit(writer->close().error().code == Errc::io ? 0 : 2);
    }
    ::_exit(3);
  });
  EXPECT_EQ(status, 0);
  const Result<Trace> trace = load(file.path());
  ASSERT_TRUE(trace);
  EXPECT_GT(trace->counters.size(), 500u);
  ASSERT_EQ(trace->truncated.size(), 1u);
  EXPECT_GT(trace->truncated[0].offset, 15'000u);
}

TEST(Output, AKilledWriterLeavesAllThatWasFlushed) {
  const TempFile file;
  const int status = in_child([&] {
    Result<Writer> writer = Writer::create(file.path(), {});
    if (!writer) return;
    for (int i = 0; i < static_cast<int>(kEventsPerFlush) + 10; ++i) {
      writer->add(Counter{.rank = Rank{0}, .time_ns = i});
    }
    ::raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  const Result<Trace> trace = load(file.path());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->counters.size(), kEventsPerFlush);
  EXPECT_FALSE(trace->complete());
}

}  // namespace
}  // namespace shard
