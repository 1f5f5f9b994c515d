// Do PyTorch's memory snapshots give every event, and is nothing in a pickle ever executed?
#include <gmock/gmock.h>

#include "tests/trace_import/files.h"
#include "tests/traces/sample_trace.h"
#include "traces/export/pickle_writer.h"
#include "traces/import/pickle.h"
#include "traces/import/pytorch_snapshot.h"
#include "traces/peaks.h"

namespace shard {
namespace {

using files::loaded;
using import::ByteSource;
using import::PickleReader;

TEST(ImportSnapshot, EventsBecomeMemoryAndTheStartIsFoundByUndoing) {
  const LoadedTrace all = loaded(files::small_pickle());
  EXPECT_EQ(all.format, TraceFormat::pytorch_snapshot);
  ASSERT_TRUE(all.snapshot);
  EXPECT_EQ(all.snapshot->segments.size(), 1u);
  EXPECT_EQ(all.snapshot->block_count(), 2);
  EXPECT_EQ(all.memory_event_count, 3);
  const Snapshot::Start& start = all.snapshot->at_start;
  EXPECT_EQ(start.allocated_bytes, 1024);  // 700 bytes took two units of 512
  std::vector<std::int64_t> deltas;
  for (std::size_t i = 0; i < all.trace.memory.size(); ++i) deltas.push_back(all.trace.memory[i].delta_bytes);
  EXPECT_THAT(deltas, ::testing::ElementsAre(1024, -1024, 1024));
  EXPECT_EQ(all.trace.memory[2].time_ns, 6000);
}

TEST(ImportSnapshot, TextProtocolsAndSharedValues) {
  // {'segments': [{'total_size': 5L, 'address': 1, 'device': 0, 'blocks': [d, d]}]} with d from the memo, protocol 0
  const LoadedTrace all = loaded(std::string("\x80\x03", 2) +
                                 "(dp0\nVsegments\np1\n(lp2\n(dp3\nVtotal_size\nL5L\nsVaddress\nI1\nsVblocks\n"
                                 "(l(dVsize\nI2\nsVstate\nVinactive\nsp9\nag9\nasasasVdevice_traces\n(ls.");
  ASSERT_TRUE(all.snapshot);
  EXPECT_EQ(all.snapshot->reserved_bytes(), 5);
  EXPECT_EQ(all.snapshot->block_count(), 2);
}

TEST(ImportSnapshot, BlocksOfPyTorch20HaveAHistory) {
  const Result<LoadedTrace> all = load_any(TEST_DATA "/fuzz/corpus/snapshot_fuzz/of_2_0.pickle");
  ASSERT_TRUE(all) << to_string(all.error());
  const SnapshotBlock& block = all->snapshot->segments.at(0).blocks.at(0);
  EXPECT_EQ(block.requested_bytes, 1100);
  ASSERT_TRUE(block.stack.valid());
  EXPECT_EQ(block.stack, all->snapshot->events.at(0).stack);
  EXPECT_EQ(all->snapshot->events.size(), 3u);
  EXPECT_EQ(all->trace.memory[0].delta_bytes, 1536);
}

/// Written by Python's own pickler (make_snapshots.py).
class SnapshotProtocol : public ::testing::TestWithParam<int> {};

TEST_P(SnapshotProtocol, SaysTheSame) {
  const std::string name = "/fuzz/corpus/snapshot_fuzz/protocol" + std::to_string(GetParam()) + ".pickle";
  const Result<LoadedTrace> all = load_any(TEST_DATA + name);
  ASSERT_TRUE(all) << to_string(all.error());
  const std::uint64_t base = 140'000'000'000'000;
  const Snapshot& snapshot = *all->snapshot;
  ASSERT_EQ(snapshot.segments.size(), 1u);
  const Trace& trace = all->trace;
  const StackId stack = snapshot.events[0].stack;
  std::vector<std::string> frames;
  for (StackId at = stack; at.valid(); at = trace.stack_of(at).caller) {
    const StackFrame& frame = trace.frame_of(trace.stack_of(at).frame);
    frames.push_back(std::string(trace.name_of(frame.function)) + " " + std::string(trace.name_of(frame.file)) + ":" +
                     std::to_string(frame.line));
  }
  EXPECT_THAT(frames, ::testing::ElementsAre("forward model.py:7", "main train.py:1"));
  std::vector<SnapshotBlock> blocks = snapshot.segments[0].blocks;
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(trace.name_of(blocks[0].state), "active_allocated");
  EXPECT_EQ(trace.name_of(blocks[1].state), "inactive");
  blocks[0].state = blocks[1].state = NameId{};
  EXPECT_EQ(blocks, (std::vector<SnapshotBlock>{{base, 1536, 1100, true, stack, true},
                                                {base + 1536, (2 << 20) - 1536, 0, false}}));
  ASSERT_EQ(snapshot.events.size(), 6u);
  EXPECT_EQ(snapshot.events[2],
            (SnapshotEvent{SnapshotAction::alloc, 0, base + 1536, 600, 0, 1'700'000'000'000'003, stack, true}));
  EXPECT_FALSE(snapshot.events[5].has_stack);
  ASSERT_EQ(snapshot.remarks.size(), 2u);
  EXPECT_EQ(snapshot.remarks[0].event, 2u);
  EXPECT_EQ(trace.name_of(snapshot.remarks[0].text), "activation");
  EXPECT_EQ(snapshot.remarks[1].number, 5) << "device_free";
  EXPECT_EQ(snapshot.events[5].bytes, std::int64_t{1} << 40);
  EXPECT_EQ(snapshot.at_start.reserved_bytes, 0);
  EXPECT_EQ(all->trace.header.metadata.at("allocator_settings.expandable_segments"), "false");
  EXPECT_TRUE(all->trace.complete());
  // Offsets count within the segments, not the address space.
  EXPECT_THAT(all->trace.memory.offset_bytes, ::testing::ElementsAre(0, 1536, 1536));
  EXPECT_THAT(all->trace.memory.delta_bytes, ::testing::ElementsAre(1536, 1024, -1024));
}

INSTANTIATE_TEST_SUITE_P(PickledByPython, SnapshotProtocol, ::testing::Values(2, 3, 4, 5));

/// A block that is let go before another one comes, and given back behind it.
void write_pending_free(const std::filesystem::path& path) {
  struct Event {
    const char* action;
    std::int64_t address;
  };
  Result<OutputFile> out = OutputFile::create(path);
  ASSERT_TRUE(out);
  PickleWriter writer(*out);
  writer.begin_dict();
  writer.text("segments");
  writer.begin_list();
  writer.end_list();
  writer.text("device_traces");
  writer.begin_list();
  writer.begin_list();
  for (const Event& event : std::initializer_list<Event>{{"segment_alloc", 1 << 20},
                                                         {"alloc", 1 << 20},
                                                         {"free_requested", 1 << 20},
                                                         {"alloc", (1 << 20) + 512},
                                                         {"free_completed", 1 << 20}}) {
    writer.begin_dict();
    writer.text("action");
    writer.text(event.action);
    writer.text("addr");
    writer.integer(event.address);
    writer.text("size");
    writer.integer(event.action == std::string_view("segment_alloc") ? 2 << 20 : 512);
    writer.text("stream");
    writer.integer(0);
    writer.end_dict();
  }
  writer.end_list();
  writer.end_list();
  writer.end_dict();
  writer.finish();
  ASSERT_TRUE(out->finish());
}

TEST(ImportSnapshot, WhatIsLetGoCountsAsActiveAndNotAsAllocated) {
  const sample::TempFile file(".pickle");
  ASSERT_NO_FATAL_FAILURE(write_pending_free(file.path()));
  for (const auto& [counted, deltas, peak] :
       {std::tuple{import::Counted::active, std::vector<std::int64_t>{512, 512, -512}, 1024},
        std::tuple{import::Counted::allocated, std::vector<std::int64_t>{512, -512, 512}, 512}}) {
    Result<ByteSource> source = ByteSource::open(file.path());
    ASSERT_TRUE(source);
    const Result<LoadedTrace> all = import::import_pytorch_snapshot(*source, counted);
    ASSERT_TRUE(all) << to_string(all.error());
    EXPECT_THAT(all->trace.memory.delta_bytes, ::testing::ElementsAreArray(deltas));
    EXPECT_EQ(all->trace.arenas.at(0).live_peak_bytes, peak);
  }
}

std::string run(const std::string& pickle) {
  ByteSource source = ByteSource::memory(files::bytes(pickle), "pickle");
  PickleReader reader(source);
  if (!reader.run()) return "byte " + std::to_string(reader.at()) + ": " + reader.error();
  const PickleReader::Value value = reader.result();
  switch (value.kind()) {
    case PickleReader::Kind::inert: return "inert";
    case PickleReader::Kind::integer: return std::to_string(value.payload());
    case PickleReader::Kind::string: return std::string(reader.text(value));
    case PickleReader::Kind::list: return "list of " + std::to_string(reader.items(value).size());
    case PickleReader::Kind::dict: return "dict of " + std::to_string(reader.items(value).size() / 2);
    case PickleReader::Kind::none:
    case PickleReader::Kind::boolean:
    case PickleReader::Kind::real: return "scalar";
    case PickleReader::Kind::global:
    case PickleReader::Kind::object:
    case PickleReader::Kind::reference: return "kept";
  }
  return "?";
}

TEST(Pickle, CallsAreInert) {
  EXPECT_EQ(run("cos\nsystem\n(S'echo'\ntR."), "inert");
  EXPECT_EQ(run("(cos\nsystem\nS'echo'\no."), "inert");
  EXPECT_EQ(run("(S'echo'\nios\nsystem\n."), "inert");
  EXPECT_EQ(run(std::string("\x80\x04\x8c\x02os\x8c\x06system\x93)\x81}b.", 21)), "inert");
}

TEST(Pickle, CallsAreKeptAsDataWhereThatIsAskedFor) {
  // collections.OrderedDict() with a state and an item; a reference; a class by its name.
  const std::string pickle = "(lccollections\nOrderedDict\n)RS'key'\nI5\ns}S'a'\nI1\nsbaS'id'\nQacos\nsystem\na.";
  ByteSource source = ByteSource::memory(files::bytes(pickle), "pickle");
  PickleReader reader(source, PickleReader::Objects::kept);
  ASSERT_TRUE(reader.run()) << reader.error();
  const auto items = reader.items(reader.result());
  ASSERT_EQ(items.size(), 3U);
  const auto made = reader.made(items[0]);
  ASSERT_TRUE(made);
  EXPECT_EQ(reader.name(made->callable), "collections.OrderedDict");
  EXPECT_EQ(reader.items(made->arguments).size(), 0U);
  ASSERT_EQ(made->items.size(), 2U);
  EXPECT_EQ(reader.text(made->items[0]), "key");
  EXPECT_EQ(reader.integer(made->items[1]), 5);
  EXPECT_EQ(reader.integer(reader.find(made->state, "a").value_or(PickleReader::Value())), 1);
  ASSERT_EQ(reader.items(items[1]).size(), 1U);
  EXPECT_EQ(reader.text(reader.items(items[1])[0]), "id");
  EXPECT_EQ(reader.name(items[2]), "os.system");
}

TEST(Pickle, IntegersOfEveryWidth) {
  EXPECT_EQ(run(std::string("\x80\x02K\xff.", 5)), "255");
  EXPECT_EQ(run(std::string("M\x01\x80.", 4)), "32769");
  EXPECT_EQ(run(std::string("J\xff\xff\xff\xff.", 6)), "-1");
  EXPECT_EQ(run(std::string("\x8a\x00.", 3)), "0");
  EXPECT_EQ(run(std::string("\x8a\x02\x00\x80.", 5)), "-32768");
  EXPECT_EQ(run(std::string("\x8a\x06\x00\x00\x00\x00\x00\x7f.", 9)), "139637976727552");
  EXPECT_EQ(run(std::string("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", 12)),
            std::to_string((std::int64_t{1} << 59) - 1));  // beyond what is kept
}

TEST(Pickle, FaultsNameTheirByte) {
  EXPECT_EQ(run("}(X"), "byte 2: ends inside a number");
  EXPECT_EQ(run("K"), "byte 0: ends inside a number");
  EXPECT_EQ(run("u."), "byte 0: takes a mark that is not there");
  EXPECT_EQ(run("0."), "byte 0: takes a mark that is not there");
  EXPECT_EQ(run("a."), "byte 0: takes more from its stack than is there");
  EXPECT_EQ(run("h\x05."), "byte 0: asks for a memo that it never made");
  EXPECT_EQ(run("\x80\x06."), "byte 0: is of protocol 6, newer than 5");
  EXPECT_EQ(run("~"), "byte 0: holds no opcode but 126");
}

TEST(Pickle, AListThatHoldsItself) {
  EXPECT_EQ(run("]q\x01h\x01"
                "a."),
            "list of 1");
}

TEST(Pickle, EveryWordAboutItselfIsBounded) {
  // A string that claims 2^60 bytes, and one dict named a million times.
  EXPECT_THAT(run(std::string("\x8d\x00\x00\x00\x00\x00\x00\x00\x10", 9)),
              ::testing::HasSubstr("ends inside a string"));
  std::string many("\x80\x02}q\x00", 5);
  many += "(";
  for (int i = 0; i < 12'000'000; ++i) many += std::string("h\x00", 2);
  EXPECT_THAT(run(many + "l."), ::testing::HasSubstr("than a pickle of this size can hold"));
}

struct Recording {
  std::string name;
  std::int64_t segments, blocks, events, reserved, allocated, start_reserved, start_allocated;
};

class SnapshotRecording : public ::testing::TestWithParam<Recording> {};

TEST_P(SnapshotRecording, CountsAndBytesAreThePublishedOnes) {
  const Recording& r = GetParam();
  const auto path = files::recording(r.name);
  SKIP_WITHOUT(path);
  const Result<LoadedTrace> all = load_any(path);
  ASSERT_TRUE(all) << to_string(all.error());
  const Snapshot& snapshot = *all->snapshot;
  EXPECT_EQ(static_cast<std::int64_t>(snapshot.segments.size()), r.segments);
  EXPECT_EQ(snapshot.block_count(), r.blocks);
  EXPECT_EQ(all->memory_event_count, r.events);
  EXPECT_EQ(snapshot.reserved_bytes(), r.reserved);
  EXPECT_EQ(snapshot.allocated_bytes(), r.allocated);
  EXPECT_EQ(snapshot.at_start.reserved_bytes, r.start_reserved);
  EXPECT_EQ(snapshot.at_start.allocated_bytes, r.start_allocated);
  // The events, from the start on, sum to what the blocks at the end hold.
  std::int64_t live = 0;
  for (const std::int64_t delta : all->trace.memory.delta_bytes) live += delta;
  EXPECT_EQ(live, r.allocated);
  EXPECT_EQ(all->trace.arenas.at(0).peak_bytes, r.reserved);  // nothing larger in between in these two
}

INSTANTIATE_TEST_SUITE_P(Public, SnapshotRecording,
                         ::testing::Values(Recording{"pytorch-snapshot-small.pickle", 10, 54, 5803, 134'217'728,
                                                     48'760'832, 25'165'824, 8'781'824},
                                           Recording{"pytorch-snapshot-transformer-forward.pickle", 700, 1297, 5125,
                                                     26'545'750'016, 26'388'097'024, 19'667'091'456, 13'798'361'088}));

}  // namespace
}  // namespace shard
