// Do streams, events, copies and calls of the host happen when CUDA says, and in no order that it does not promise?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Appends `name` to a text of the host when the stream comes to it.
struct Notes {
  std::string text;
  struct Note {
    Notes* notes;
    char name;
  };
  std::deque<Note> kept;
  void add(EmulatedDevice& device, Stream stream, char name) {
    kept.push_back({this, name});
    EXPECT_TRUE(device->call_host(
        stream, [](void* data) { static_cast<Note*>(data)->notes->text += static_cast<Note*>(data)->name; },
        &kept.back()));
  }
};

TEST(EmulatedStreams, NothingRunsBeforeSomebodyAsks) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  Notes notes;
  notes.add(device, stream, 'a');
  EXPECT_EQ(notes.text, "");
  EXPECT_TRUE(device.finish(stream));
  EXPECT_EQ(notes.text, "a");
}

TEST(EmulatedStreams, OneQuestionRunsABoundedAmountOfWork) {
  EmulatedDevice device({.work_per_question = 8});
  const Stream stream = device.stream();
  Notes notes;
  for (int i = 0; i < 100; ++i) notes.add(device, stream, 'a');
  const Event event = device->make_event().value();
  EXPECT_TRUE(device->record(event, stream));
  EXPECT_FALSE(*device->is_done(event));
  EXPECT_EQ(notes.text.size(), 8U);
  int questions = 1;
  while (!*device->is_done(event)) ++questions;
  EXPECT_EQ(notes.text.size(), 100U);
  EXPECT_EQ(questions, 12);
}

TEST(EmulatedStreams, AStreamRunsInOrderAndOthersAnyhow) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    EmulatedDevice device({.seed = seed});
    const Stream left = device.stream("left");
    const Stream right = device.stream("right");
    Notes notes;
    notes.add(device, left, 'a');
    notes.add(device, right, 'x');
    notes.add(device, left, 'b');
    notes.add(device, right, 'y');
    EXPECT_TRUE(device.finish(left));
    EXPECT_TRUE(device.finish(right));
    EXPECT_LT(notes.text.find('a'), notes.text.find('b'));
    EXPECT_LT(notes.text.find('x'), notes.text.find('y'));
    seen.insert(notes.text);
  }
  EXPECT_TRUE(seen.contains("abxy"));
  EXPECT_TRUE(seen.contains("xyab"));
  EXPECT_GT(seen.size(), 2U) << "priorities change";
}

TEST(EmulatedStreams, TheSeedDecidesTheOrder) {
  const auto order = [](std::uint64_t seed, bool as_enqueued) {
    EmulatedDevice device({.seed = seed, .as_enqueued = as_enqueued});
    Notes notes;
    std::vector<Stream> streams;
    for (int i = 0; i < 4; ++i) streams.push_back(device.stream());
    for (int i = 0; i < 26; ++i)
      notes.add(device, streams[static_cast<std::size_t>(i) % 4], static_cast<char>('a' + i));
    for (const Stream stream : streams) EXPECT_TRUE(device.finish(stream));
    return notes.text;
  };
  EXPECT_EQ(order(1, false), order(1, false));
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) seen.insert(order(seed, false));
  EXPECT_GT(seen.size(), 10U);
  EXPECT_EQ(order(7, true), "abcdefghijklmnopqrstuvwxyz");
}

TEST(EmulatedStreams, AWaitHoldsTheStreamBack) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EmulatedDevice device({.seed = seed});
    const Stream left = device.stream();
    const Stream right = device.stream();
    Notes notes;
    const Event event = device->make_event().value();
    for (int i = 0; i < 10; ++i) notes.add(device, left, 'a');
    EXPECT_TRUE(device->record(event, left));
    EXPECT_TRUE(device->wait(right, event));
    notes.add(device, right, 'x');
    EXPECT_TRUE(device.finish(right));
    EXPECT_THAT(notes.text, HasSubstr("aaaaaaaaaax"));
  }
}

TEST(EmulatedStreams, AnEventStandsForItsLastRecordWhenItIsAskedFor) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EmulatedDevice device({.seed = seed});
    const Stream left = device.stream();
    const Stream right = device.stream();
    Notes notes;
    const Event event = device->make_event().value();
    EXPECT_TRUE(*device->is_done(event)) << "never recorded";
    EXPECT_TRUE(device->wait(right, event));
    notes.add(device, left, 'a');
    EXPECT_TRUE(device->record(event, left));
    EXPECT_TRUE(device->wait(right, event));
    notes.add(device, left, 'b');
    EXPECT_TRUE(device->record(event, left));  // of no matter to the wait before
    notes.add(device, right, 'x');
    EXPECT_TRUE(device.finish(right));
    EXPECT_TRUE(device.finish(left));
    EXPECT_LT(notes.text.find('a'), notes.text.find('x'));
    seen.insert(notes.text);
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre("abx", "axb"));
}

TEST(EmulatedStreams, PageableMemoryIsReadAtOnceAndPinnedMemoryLate) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  auto* const pinned = reinterpret_cast<float*>(device->allocate_pinned(Bytes{4}).value());
  float pageable = 1;
  *pinned = 1;
  float* const memory = device.room<float>(2);
  EXPECT_TRUE(device->copy(stream, memory, &pageable, 4));
  EXPECT_TRUE(device->copy(stream, memory + 1, pinned, 4));
  pageable = 2;
  *pinned = 2;
  EXPECT_THAT(device.read(stream, memory, 2), ElementsAre(1, 2));
}

TEST(EmulatedStreams, FillsAndCopiesWithinTheDevice) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  auto* const memory = device.room<std::uint8_t>(8);
  EXPECT_TRUE(device->fill(stream, memory, 3, 4));
  EXPECT_TRUE(device->copy(stream, memory + 4, memory + 1, 3));
  EXPECT_TRUE(device->fill(stream, memory + 7, 9, 1));
  EXPECT_THAT(device.read(stream, memory, 8), ElementsAre(3, 3, 3, 3, 3, 3, 3, 9));
}

TEST(EmulatedStreams, TimePassesBetweenEventsThatAreDone) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  const Event begin = device->make_event().value();
  const Event end = device->make_event().value();
  Notes notes;
  EXPECT_TRUE(device->record(begin, stream));
  notes.add(device, stream, 'a');
  EXPECT_TRUE(device->record(end, stream));
  while (!*device->is_done(end)) {
  }
  EXPECT_GE(*device->seconds_between(begin, end), 0.0);
  EXPECT_TRUE(device->record(end, stream));
  EXPECT_THAT(said(device->seconds_between(begin, end)), HasSubstr("events that are not done"));
}

TEST(EmulatedStreams, OpsBeginAndEndInPairs) {
  EmulatedDevice device;
  const Stream stream = device.stream("compute");
  EXPECT_THAT(said(device->end_op(stream)), HasSubstr("an op ends on stream 'compute' that did not begin"));
  EmulatedDevice other;
  const Stream second = other.stream("compute");
  EXPECT_TRUE(other->begin_op(second, {}));
  EXPECT_THAT(said(other->begin_op(second, {})), HasSubstr("within an op"));
}

}  // namespace
}  // namespace shard::cuda
