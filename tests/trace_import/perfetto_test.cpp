// Do Perfetto's track events, in the forms that its SDK writes them, give the spans, counters and flows meant?
#include <gmock/gmock.h>

#include "tests/trace_import/files.h"

namespace shard {
namespace {

using files::add_packet;
using files::loaded;
using files::spans;
using files::track_event;

TEST(ImportPerfetto, SlicesInstantsCountersFlows) {
  const LoadedTrace all = loaded(files::small_perfetto());
  EXPECT_EQ(all.format, TraceFormat::perfetto);
  EXPECT_EQ(spans(all.trace), "outer 100+60 | inner 110+20");
  EXPECT_EQ(files::track_names(all.trace), "main");
  ASSERT_EQ(all.instants.size(), 1u);
  EXPECT_EQ(all.instants[0].time_ns, 140);
  ASSERT_EQ(all.trace.counters.size(), 1u);
  EXPECT_EQ(all.trace.counters[0].value, 1024);
  EXPECT_EQ(all.trace.name_of(all.trace.counters[0].name), "resident");
  ASSERT_EQ(all.trace.flows.size(), 1u);
  EXPECT_EQ(all.trace.flows[0].from_ns, 105);
  EXPECT_EQ(all.trace.flows[0].to_ns, 115);
  EXPECT_TRUE(all.trace.complete());
}

/// A packet of a sequence with flags and interned name `iid`.
ProtoMessage interned_event(std::int64_t sequence, std::int64_t flags, std::int64_t time, std::int64_t type,
                            std::int64_t iid, const std::string& name) {
  ProtoMessage event, packet, data, entry;
  event.varint(9, type);
  event.varint(11, 5);
  if (iid != 0) event.varint(10, iid);
  packet.varint(8, time);
  packet.varint(10, sequence);
  packet.varint(13, flags);
  packet.message(11, event);
  if (!name.empty()) {
    entry.varint(1, iid);
    entry.text(2, name);
    data.message(2, entry);
    packet.message(12, data);
  }
  return packet;
}

TEST(ImportPerfetto, NamesAreInternedPerSequenceUntilCleared) {
  ProtoMessage trace;
  add_packet(trace, interned_event(1, 3, 10, 1, 1, "first"));
  add_packet(trace, interned_event(1, 2, 20, 2, 0, ""));
  add_packet(trace, interned_event(1, 2, 30, 1, 1, ""));
  add_packet(trace, interned_event(1, 2, 40, 2, 0, ""));
  add_packet(trace, interned_event(1, 3, 50, 1, 1, "second"));
  add_packet(trace, interned_event(1, 2, 60, 2, 0, ""));
  EXPECT_EQ(spans(loaded(trace.bytes()).trace), "first 10+10 | first 30+10 | second 50+10");
}

/// An event of the older kind: its phase, and an id that counts for the process (6) or for all (11).
ProtoMessage legacy_event(std::int64_t time, char phase, std::int64_t track, std::uint32_t id_field, std::int64_t id) {
  ProtoMessage legacy, event, packet;
  legacy.varint(2, phase);
  legacy.varint(id_field, id);
  event.message(6, legacy);
  event.varint(11, track);
  event.text(22, "io");
  event.text(23, "read " + std::to_string(id));
  packet.varint(8, time);
  packet.varint(10, 1);
  packet.message(11, event);
  return packet;
}

TEST(ImportPerfetto, AsynchronousEventsAreJoinedByTheirIds) {
  ProtoMessage trace;
  add_packet(trace, legacy_event(10, 'b', 1, 6, 7));
  add_packet(trace, legacy_event(20, 'b', 1, 6, 8));
  add_packet(trace, legacy_event(25, 'n', 1, 6, 8));
  add_packet(trace, legacy_event(30, 'e', 1, 6, 7));
  add_packet(trace, legacy_event(40, 'S', 1, 11, 7));
  add_packet(trace, legacy_event(50, 'e', 1, 6, 8));
  add_packet(trace, legacy_event(60, 'F', 2, 11, 7));
  const LoadedTrace all = loaded(trace.bytes());
  EXPECT_EQ(spans(all.trace), "read 7 10+20 | read 8 20+30 | read 7 40+20");
  EXPECT_EQ(all.instants.size(), 1u);
  EXPECT_TRUE(all.notes.empty());
}

TEST(ImportPerfetto, PacketsWhoseStateWasLostAreCountedAsDropped) {
  ProtoMessage trace;
  add_packet(trace, interned_event(1, 2, 10, 1, 1, ""));
  add_packet(trace, interned_event(2, 3, 20, 3, 1, "mark"));
  const LoadedTrace all = loaded(trace.bytes());
  EXPECT_EQ(all.trace.dropped_count, 1);
  EXPECT_TRUE(all.trace.spans.empty());
}

TEST(ImportPerfetto, IncrementalMicrosecondClockOfASequence) {
  ProtoMessage trace, snapshot, boot, mine, packet, defaults;
  boot.varint(1, 6);
  boot.varint(2, 1'000'000);
  mine.varint(1, 64);
  mine.varint(2, 500);
  mine.varint(3, 1);
  mine.varint(4, 1000);
  snapshot.message(1, boot);
  snapshot.message(1, mine);
  packet.varint(10, 1);
  packet.varint(13, 1);
  packet.message(6, snapshot);
  defaults.varint(58, 64);
  packet.message(59, defaults);
  add_packet(trace, packet);
  add_packet(trace, track_event(3, 1, 5, "a"));  // 3 us after the snapshot
  add_packet(trace, track_event(4, 2, 5));       // 4 us after that
  EXPECT_EQ(spans(loaded(trace.bytes()).trace), "a 1003000+4000");
}

TEST(ImportPerfetto, UnknownFieldsAndPacketsArePassedOver) {
  ProtoMessage trace, packet, junk;
  junk.text(3, "whatever");
  packet.message(777, junk);
  packet.fixed64(900, 5);
  packet.varint(10, 1);
  add_packet(trace, packet);
  std::string bytes = trace.bytes() + files::small_perfetto();
  EXPECT_EQ(loaded(bytes).trace.spans.size(), 2u);
}

TEST(ImportPerfetto, ADamagedPacketCostsOnlyItself) {
  ProtoMessage trace, broken;
  broken.text(11, "\xff\xff\xff");
  add_packet(trace, broken);
  const LoadedTrace all = loaded(files::small_perfetto() + trace.bytes() + files::small_perfetto());
  EXPECT_EQ(all.trace.spans.size(), 4u);
  ASSERT_EQ(all.trace.truncated.size(), 1u);
  EXPECT_EQ(all.trace.truncated[0].offset, files::small_perfetto().size());
}

TEST(ImportPerfetto, PacketsCompressedByDeflate) {
  const std::string plain = files::small_perfetto();
  std::string packed(compressBound(static_cast<uLong>(plain.size())), '\0');
  auto size = static_cast<uLongf>(packed.size());
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(plain.data()),
                     static_cast<uLong>(plain.size())),
            Z_OK);
  packed.resize(size);
  ProtoMessage trace, packet;
  packet.text(50, packed);
  add_packet(trace, packet);
  EXPECT_EQ(spans(loaded(trace.bytes()).trace), "outer 100+60 | inner 110+20");
}

TEST(ImportPerfetto, GzipToo) {
  EXPECT_EQ(loaded(files::gzip(files::small_perfetto())).trace.spans.size(), 2u);
}

}  // namespace
}  // namespace shard
