// Is what is captured kept as a graph, and run in every order that its edges allow and in no other?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

using testing::HasSubstr;

SHARD_KERNEL increment_kernel(float* x) {
  x[0] += 1;
}

class Captured : public testing::Test {
 protected:
  explicit Captured(const EmulatedOptions& options = {.seed = 3}) : device(options) {
    main = device.stream("main");
    side = device.stream("side");
    fork = device->make_event().value();
    join = device->make_event().value();
  }
  void note(Stream stream, char name) {
    notes.push_back({&text, name});
    EXPECT_TRUE(device->call_host(
        stream, [](void* data) { *static_cast<Note*>(data)->text += static_cast<Note*>(data)->name; }, &notes.back()));
  }
  /// a, then b on main beside x y on side, then c.
  Graph forked() {
    EXPECT_TRUE(device->begin_capture(main));
    note(main, 'a');
    EXPECT_TRUE(device->record(fork, main));
    EXPECT_TRUE(device->wait(side, fork));
    note(main, 'b');
    note(side, 'x');
    note(side, 'y');
    EXPECT_TRUE(device->record(join, side));
    EXPECT_TRUE(device->wait(main, join));
    note(main, 'c');
    return device->end_capture(main).value();
  }
  struct Note {
    std::string* text;
    char name;
  };
  EmulatedDevice device;
  Stream main = nullptr;
  Stream side = nullptr;
  Event fork = nullptr;
  Event join = nullptr;
  std::string text;
  std::deque<Note> notes;
};

TEST_F(Captured, RunsOnlyWhenLaunchedAndThenEveryTime) {
  const Graph graph = forked();
  EXPECT_TRUE(device.finish(main));
  EXPECT_EQ(text, "");
  std::set<std::string> seen;
  for (int launch = 0; launch < 100; ++launch) {
    text = "";
    EXPECT_TRUE(device->launch_graph(graph, main));
    EXPECT_TRUE(device.finish(main));
    seen.insert(text);
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre("abxyc", "axbyc", "axybc"));
}

TEST_F(Captured, WorkOfTheSameStreamIsBehindTheWholeGraph) {
  const Graph graph = forked();
  note(main, '(');
  EXPECT_TRUE(device->launch_graph(graph, main));
  note(main, ')');
  EXPECT_TRUE(device.finish(main));
  EXPECT_EQ(text.front(), '(');
  EXPECT_EQ(text.back(), ')');
  EXPECT_EQ(text.size(), 7U);
}

TEST_F(Captured, OtherStreamsRunBetweenItsNodes) {
  const Graph graph = forked();
  bool between = false;
  for (int launch = 0; launch < 200; ++launch) {
    text = "";
    EXPECT_TRUE(device->launch_graph(graph, main));
    note(side, '!');
    EXPECT_TRUE(device.finish(main));
    EXPECT_TRUE(device.finish(side));
    between = between || (text.front() != '!' && text.back() != '!');
  }
  EXPECT_TRUE(between);
}

TEST_F(Captured, AnOpsKernelsAreKeptWithTheirArguments) {
  float* const x = device.make(main, std::vector<float>{0});
  EXPECT_TRUE(device->begin_capture(main));
  EXPECT_TRUE(
      as_op(*device, main, 1, {range_of(x, 1, model::Access::update)}, [&] { launch(main, {}, increment_kernel, x); }));
  const Graph graph = device->end_capture(main).value();
  for (int step = 0; step < 3; ++step) EXPECT_TRUE(device->launch_graph(graph, main));
  EXPECT_THAT(device.read(main, x, 1), testing::ElementsAre(3));
}

TEST_F(Captured, ABranchThatDoesNotComeBackIsRefused) {
  EXPECT_TRUE(device->begin_capture(main));
  note(main, 'a');
  EXPECT_TRUE(device->record(fork, main));
  EXPECT_TRUE(device->wait(side, fork));
  EXPECT_TRUE(as_op(*device, side, 5, {}, [&] { note(side, 'x'); }));
  EXPECT_THAT(said(device->end_capture(main)),
              HasSubstr("the capture ends at stream 'main', which waits for no event behind rank 0 op 5 'five'"));
}

TEST_F(Captured, EventsDoNotCrossTheEdgeOfACapture) {
  note(side, 'x');
  EXPECT_TRUE(device->record(fork, side));
  EXPECT_TRUE(device->begin_capture(main));
  EXPECT_THAT(said(device->wait(main, fork)), HasSubstr("waits for an event from outside the capture"));
}

TEST_F(Captured, AnEventOfACaptureIsNoneAfterwards) {
  forked();
  EXPECT_THAT(said(device->wait(side, fork)), HasSubstr("an event of a capture that ended"));
}

TEST_F(Captured, NobodyAsksWhileCapturing) {
  EXPECT_TRUE(device->begin_capture(main));
  EXPECT_THAT(said(device->is_done(fork)), HasSubstr("is_done() while a stream is captured"));
}

TEST_F(Captured, OnlyTheOriginEndsTheCapture) {
  EXPECT_TRUE(device->begin_capture(main));
  EXPECT_TRUE(device->record(fork, main));
  EXPECT_TRUE(device->wait(side, fork));
  EXPECT_THAT(said(device->end_capture(side)), HasSubstr("no capture began at stream 'side'"));
}

TEST_F(Captured, PageableMemoryCannotBeReadLater) {
  float* const x = device.room<float>(1);
  const float host = 1;
  EXPECT_TRUE(device->begin_capture(main));
  EXPECT_THAT(said(device->copy(main, x, &host, 4)), HasSubstr("a copy from pageable memory is captured"));
}

TEST_F(Captured, DestroyedGraphsFinishButAreNotLaunched) {
  const Graph graph = forked();
  EXPECT_TRUE(device->launch_graph(graph, main));
  device->destroy_graph(graph);
  EXPECT_TRUE(device.finish(main));
  EXPECT_EQ(text.size(), 5U);
  EXPECT_THAT(said(device->launch_graph(graph, main)), HasSubstr("a graph is launched that was destroyed"));
}

TEST_F(Captured, AGraphOfFreedMemoryIsNotLaunched) {
  float* const x = device.room<float>(1);
  EXPECT_TRUE(device->begin_capture(main));
  EXPECT_TRUE(device->fill(main, x, 0, 4));
  const Graph graph = device->end_capture(main).value();
  device->free(reinterpret_cast<std::byte*>(x));
  EXPECT_THAT(said(device->launch_graph(graph, main)), HasSubstr("a graph is launched that touches freed memory"));
}

class CapturedAsEnqueued : public Captured {
 protected:
  CapturedAsEnqueued() : Captured({.as_enqueued = true}) {}
};

TEST_F(CapturedAsEnqueued, RunsAsItWasCaptured) {
  const Graph graph = forked();
  for (int launch = 0; launch < 5; ++launch) EXPECT_TRUE(device->launch_graph(graph, main));
  EXPECT_TRUE(device.finish(main));
  EXPECT_EQ(text, "abxycabxycabxycabxycabxyc");
}

}  // namespace
}  // namespace shard::cuda
