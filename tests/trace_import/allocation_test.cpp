// Is what the importers allocate within 64 MiB + 4 times the decompressed input, whatever the input pretends?
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/trace_import/counting_new.h"
#include "tests/trace_import/files.h"
#include "traces/frame.h"
#include "traces/writer.h"

namespace shard {
namespace {

/// Bytes allocated at most while `file` was loaded.
std::size_t peak_of_loading(const std::string& file) {
  const std::size_t before = test::forget_peak();
  (void)files::read(file);
  return test::peak_allocated() - before;
}

std::string repeated(const std::string& text, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += text;
  return all;
}

void expect_bounded(const std::string& file, std::size_t decompressed) {
  EXPECT_LE(peak_of_loading(file), (64u << 20) + 4 * decompressed) << decompressed;
}

constexpr std::size_t kLarge = 24u << 20;

TEST(Allocation, JsonOfManySmallEvents) {
  const std::string text = "[" + repeated(R"({"ph":"X","ts":1,"dur":1},)", kLarge);
  expect_bounded(text, text.size());
  expect_bounded(files::gzip(text), text.size());
  const std::string open = "[" + repeated(R"({"ph":"B","ts":1},)", kLarge);
  expect_bounded(open, open.size());
}

TEST(Allocation, JsonOfManyNamesRowsAndArrows) {
  std::string text = "[";
  for (int i = 0; text.size() < kLarge; ++i) {
    const std::string n = std::to_string(i);
    text += "{\"ph\":\"s\",\"ts\":1,\"id\":" + n + ",\"name\":" + n + ",\"tid\":" + n + "},";
    text += "{\"ph\":\"b\",\"ts\":1,\"id\":" + n + ",\"pid\":" + n + "},";
  }
  expect_bounded(text, text.size());
}

TEST(Allocation, JsonOfOneLongString) {
  const std::string text = "[{\"ph\":\"X\",\"name\":\"" + std::string(kLarge, 'a') + "\"}]";
  expect_bounded(text, text.size());
}

TEST(Allocation, CompressedNothing) {
  const std::string text = "[" + std::string(kLarge, ' ');
  EXPECT_LE(peak_of_loading(files::gzip(text)), 8u << 20);
}

TEST(Allocation, PerfettoOfTheSmallestPackets) {
  ProtoMessage event, packet, trace;
  event.varint(9, 1);
  packet.message(11, event);
  trace.message(1, packet);
  const std::string text = repeated(trace.bytes(), kLarge);
  expect_bounded(text, text.size());
}

TEST(Allocation, PerfettoOfManyInternedNames) {
  ProtoMessage trace;
  for (int i = 0; trace.bytes().size() < kLarge; ++i) {
    ProtoMessage entry, data, packet;
    entry.varint(1, i);
    entry.text(2, std::to_string(i));
    data.message(2, entry);
    packet.message(12, data);
    packet.varint(10, i);
    trace.message(1, packet);
  }
  expect_bounded(trace.bytes(), trace.bytes().size());
}

/// Memory of SQLite itself is not counted: it has a limit of its own.
TEST(Allocation, NsysThatRepeatsItself) {
  std::ifstream in(TEST_DATA "/fuzz/corpus/nsys_fuzz/small.sqlite", std::ios::binary);
  const std::string small((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  expect_bounded(small, small.size());
  expect_bounded(small + std::string(kLarge, 'x'), small.size() + kLarge);
}

/// A trace of our own of many empty names, rows or nothing at all.
std::string sst(sst::FrameType type, std::uint32_t count, std::size_t payload, std::size_t frames) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("allocation_test." + std::to_string(::getpid()) + ".sst");
  EXPECT_TRUE(Writer::create(path, {}));
  std::ifstream in(path, std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::filesystem::remove(path);
  file.resize(sst::kFileHeaderBytes);
  for (std::size_t i = 0; i < frames; ++i) {
    sst::FrameHeader header;
    header.type = static_cast<std::uint16_t>(type);
    header.count = count;
    header.track = static_cast<std::uint32_t>(i * count);
    header.raw_bytes = header.stored_bytes = static_cast<std::uint32_t>(payload);
    std::vector<std::byte> frame(sst::kFrameHeaderBytes + sst::area_bytes(header.raw_bytes, header.stored_bytes));
    header.payload_crc = sst::checksum(std::span(frame).subspan(sst::kFrameHeaderBytes));
    sst::pack(header, std::span(frame).first<sst::kFrameHeaderBytes>());
    file.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  return file;
}

TEST(Allocation, OwnTracesOfSmallThings) {
  for (const std::string& file :
       {sst(sst::FrameType::strings, 60'000, 240'000, 100), sst(sst::FrameType::tracks, 60'000, 720'000, 40),
        sst(sst::FrameType::meta, 60'000, 480'000, 50), sst(sst::FrameType::counters, 0, 0, 400'000),
        sst(sst::FrameType::spans, 1, 45, 200'000), sst(sst::FrameType::counters, 60'000, 60'000 * 24, 20)}) {
    expect_bounded(file, file.size());
  }
}

TEST(Allocation, PicklesThatNameOneThingOften) {
  const std::string event = std::string("\x80\x02}q", 4) + '\0' + "(X\x06";
  const auto text = [](std::string_view s) {
    std::string out = "X";
    out += static_cast<char>(s.size());
    return out + std::string(3, '\0') + std::string(s);
  };
  const std::string dict = "}q\x01(" + text("action") + text("alloc") + text("addr") + "K\x01u0";
  std::string file = "\x80\x02" + dict + "}(" + text("segments") + "]" + text("device_traces") + "](](" +
                     repeated("h\x01", kLarge) + "eeu.";
  expect_bounded(file, file.size());
  expect_bounded("\x80\x02" + repeated("]", kLarge), kLarge);
  expect_bounded("\x80\x02" + repeated("(", kLarge), kLarge);
  expect_bounded("\x80\x02" + repeated("N\x94", kLarge), kLarge);
  expect_bounded("\x80\x02" + repeated(std::string("\x8c\x00", 2), kLarge), kLarge);
}

}  // namespace
}  // namespace shard
