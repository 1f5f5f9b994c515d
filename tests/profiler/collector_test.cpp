// The collector behind a CUPTI that is played: every kind of record into the trace, joined to its op, whatever the
// order and the end of the process.
#include "profiler/cupti/collector.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "profiler/spool/read_spool.h"
#include "profiler/timeline/timeline.h"
#include "tests/profiler/collector_support.h"
#include "tests/profiler/fake_cupti.h"

namespace shard::profiler {
namespace {

CUpti_ActivityAPI call(std::uint64_t begin, std::uint64_t end, std::uint32_t correlation) {
  CUpti_ActivityAPI c{};
  c.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  c.cbid = 211;
  c.start = begin;
  c.end = end;
  c.correlationId = correlation;
  c.threadId = 42;
  return c;
}

CUpti_ActivityExternalCorrelation external(std::uint64_t id, std::uint32_t correlation) {
  CUpti_ActivityExternalCorrelation e{};
  e.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  e.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  e.externalId = id;
  e.correlationId = correlation;
  return e;
}

CUpti_ActivityMemory4 memory(bool acquired, std::uint64_t address, std::uint64_t bytes, std::uint64_t time,
                             std::uint32_t correlation) {
  CUpti_ActivityMemory4 m{};
  m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  m.memoryOperationType =
      acquired ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  m.address = address;
  m.bytes = bytes;
  m.timestamp = time;
  m.correlationId = correlation;
  return m;
}

/// One of every kind that carries something into a trace; the kernel belongs to op 5 of step 2.
Records one_of_each(std::uint64_t t) {
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  copy.start = t + 300, copy.end = t + 400;
  copy.correlationId = 2;
  copy.streamId = 8;
  CUpti_ActivityMemcpyPtoP4 peers{};
  peers.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peers.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peers.bytes = 512;
  peers.start = t + 410, peers.end = t + 420;
  peers.streamId = 8;
  CUpti_ActivityMemset4 fill{};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fill.bytes = 64;
  fill.start = t + 430, fill.end = t + 440;
  fill.streamId = 8;
  CUpti_ActivityMemoryPool3 pool{};
  pool.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
  pool.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED;
  pool.size = 1 << 20;
  pool.timestamp = t + 450;
  CUpti_ActivitySynchronization2 wait{};
  wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  wait.start = t + 460, wait.end = t + 500;
  CUpti_ActivityEnvironment power{};
  power.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
  power.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_POWER;
  power.timestamp = t + 510;
  power.data.power.power = 350'000;
  CUpti_ActivityDevice5 device{};
  device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  device.name = "NVIDIA H200";
  device.globalMemorySize = std::uint64_t{141} << 30;
  Records records;
  records.add(device)
      .add(call(t + 10, t + 20, 1))
      .add(external(PushedOp{5, 3}.id(), 1))
      .add(kernel(t + 100, t + 200, 1))
      .add(call(t + 30, t + 40, 2))
      .add(copy)
      .add(peers)
      .add(fill)
      .add(call(t + 50, t + 60, 3))
      .add(memory(true, 0x7000, 1 << 16, t + 55, 3))
      .add(memory(false, 0x7000, 1 << 16, t + 600, 4))
      .add(pool)
      .add(wait)
      .add(marker(9, t + 5, CUPTI_ACTIVITY_FLAG_MARKER_START, "a range"))
      .add(marker(9, t + 520, CUPTI_ACTIVITY_FLAG_MARKER_END, nullptr))
      .add(marker(0, t + 530, CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, "a mark"))
      .add(power);
  return records;
}

const Span* named(const std::vector<Span>& spans, const Trace& trace, std::string_view name) {
  const auto at =
      std::find_if(spans.begin(), spans.end(), [&](const Span& s) { return trace.name_of(s.name) == name; });
  return at == spans.end() ? nullptr : &*at;
}

TEST_F(InAChild, EveryKindComesIntoTheTrace) {
  const auto t = static_cast<std::uint64_t>(host_now());
  ASSERT_EQ(run([&](Collector& collector, Spool&) {
              fake_cupti::deliver(one_of_each(t));
              collector.flush(true);
            }),
            0);
  const Timeline made = timeline();
  const Trace& trace = made.loaded.trace;
  const std::vector<Span> spans = spans_of(trace);
  EXPECT_EQ(names_of(trace), (std::vector<std::string>{"Memcpy HtoD", "Memcpy PtoP", "Memset", "a range", "cudaCall211",
                                                       "cudaCall211", "cudaCall211", "multiply", "wait for a stream"}));
  const Span* const multiply = named(spans, trace, "multiply");
  ASSERT_NE(multiply, nullptr);
  EXPECT_EQ(multiply->op.value, 5);
  EXPECT_EQ(trace.track_of(multiply->track).rank, Rank{3});
  EXPECT_EQ(multiply->duration_ns, 100);
  EXPECT_EQ(multiply->activity, Activity::kernel);
  EXPECT_EQ(named(spans, trace, "Memcpy HtoD")->bytes, 4096);
  EXPECT_EQ(named(spans, trace, "a range")->duration_ns, 515);
  ASSERT_EQ(trace.memory.size(), 2u);
  EXPECT_EQ(trace.memory[0].delta_bytes, 1 << 16);
  EXPECT_EQ(trace.memory[1].delta_bytes, -(1 << 16));
  const StackFrame& frame = trace.frame_of(trace.stack_of(trace.memory[0].stack).frame);
  EXPECT_EQ(trace.name_of(frame.function), "cudaCall211");
  EXPECT_EQ(made.loaded.instants.size(), 1u);
  EXPECT_EQ(trace.counters.size(), 2u);
  EXPECT_EQ(trace.header.metadata.at("gpu 0"), "NVIDIA H200");
  EXPECT_EQ(trace.flows.size(), 2u);
  EXPECT_EQ(trace.dropped_count, 0);
  EXPECT_EQ(made.joined.with_op, 1);
}

TEST_F(InAChild, KernelsOfAGraphThatRunsAgainFindTheirOps) {
  ASSERT_EQ(run([&](Collector& collector, Spool& spool) {
              // Captured in step 0: two ops of two nodes each; instantiated, which copies nodes; launched three times.
              for (std::int32_t op = 10; op < 12; ++op) {
                collector.push(PushedOp{op, 0}.id());
                for (std::uint64_t n = 0; n < 2; ++n) fake_cupti::make_node(static_cast<std::uint64_t>(op) * 10 + n);
                collector.pop();
              }
              for (const std::uint64_t node : {100, 101, 110, 111}) fake_cupti::clone_node(1000 + node, node);
              Lane lane(spool);
              const NameNumber step = spool.name("step");
              Records records;
              auto t = static_cast<std::uint64_t>(host_now());
              for (std::uint32_t launch = 0; launch < 3; ++launch, t += 10'000'000) {
                lane.add({.kind = EventKind::range,
                          .detail = static_cast<std::uint8_t>(RangeOf::phase),
                          .flags = kFromHost,
                          .name = step,
                          .begin_ns = static_cast<std::int64_t>(t),
                          .end_ns = static_cast<std::int64_t>(t + 9'000'000),
                          .id = PushedOp{}.id(),
                          .extra = PhaseStep{Phase::steady_step, static_cast<std::int32_t>(4 + launch)}.packed()});
                // In the middle, since the clocks agree to some microseconds.
                records.add(call(t + 4'000'000, t + 4'000'100, 50 + launch));
                for (const std::uint64_t node : {1100, 1101, 1110, 1111})
                  records.add(kernel(t + 5'000'000 + node, t + 5'000'001 + node, 50 + launch, node));
              }
              fake_cupti::deliver(records);
              collector.flush(true);
            }),
            0);
  const Timeline made = timeline();
  EXPECT_EQ(made.joined.device_spans, 12);
  EXPECT_EQ(made.joined.with_op, 12);
  std::map<std::pair<int, int>, int> count;
  for (const Span& span : spans_of(made.loaded.trace))
    if (span.activity == Activity::kernel) ++count[{span.step, span.op.value}];
  EXPECT_EQ(count.size(), 6u);
  for (int step = 4; step < 7; ++step)
    for (int op = 10; op < 12; ++op) EXPECT_EQ((count[{step, op}]), 2) << step << " " << op;
}

TEST_F(InAChild, LateOutOfOrderAndTwiceIsTheSameTrace) {
  const auto t = static_cast<std::uint64_t>(host_now());
  Records records;
  for (std::uint32_t i = 1; i < 200; ++i) {
    records.add(call(t + i * 100, t + i * 100 + 5, i));
    records.add(external(PushedOp{static_cast<std::int32_t>(i), 0}.id(), i));
    records.add(kernel(t + i * 100 + 50, t + i * 100 + 90, i));
  }
  ASSERT_EQ(run([&](Collector& c, Spool&) { fake_cupti::deliver(records), c.flush(true); }), 0);
  const Timeline in_order = timeline();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Records mixed = records;
    std::mt19937_64 random(seed);
    auto& list = mixed.list();
    const std::size_t twice = list.size();
    for (std::size_t i = 0; i < twice; i += 1 + random() % 5) list.push_back(list[i]);
    std::shuffle(list.begin(), list.end(), random);
    ASSERT_EQ(run([&](Collector& c, Spool&) { fake_cupti::deliver(mixed), c.flush(true); }), 0);
    const Timeline made = timeline();
    ASSERT_EQ(made.joined.device_spans, 199);
    ASSERT_EQ(made.joined.with_op, 199);
    ASSERT_EQ(made.joined.without_call, 0);
    ASSERT_EQ(names_of(made.loaded.trace), names_of(in_order.loaded.trace));
    std::vector<std::pair<std::int32_t, std::int64_t>> a, b;
    for (const Span& s : spans_of(made.loaded.trace)) a.emplace_back(s.op.value, s.duration_ns);
    for (const Span& s : spans_of(in_order.loaded.trace)) b.emplace_back(s.op.value, s.duration_ns);
    std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
    ASSERT_EQ(a, b);
  }
}

TEST_F(InAChild, FullBuffersAreRefusedAndWhatIsLostIsCounted) {
  const auto t = static_cast<std::uint64_t>(host_now());
  constexpr std::uint32_t kCount = 40'000;
  ASSERT_EQ(run(
                [&](Collector& collector, Spool&) {
                  Records records;
                  for (std::uint32_t i = 1; i <= kCount; ++i) records.add(kernel(t + i, t + i + 1, i));
                  fake_cupti::deliver(records, true);  // the reader is late: no buffer comes back
                  fake_cupti::give_back();
                  collector.flush(true);
                },
                {.most_buffer_bytes = 3 << 20}),
            0);
  const Timeline made = timeline();
  EXPECT_GT(made.joined.device_spans, 1000);
  EXPECT_GT(made.loaded.trace.dropped_count, 1000);
  EXPECT_EQ(made.joined.device_spans + made.loaded.trace.dropped_count, kCount);
}

TEST_F(InAChild, NothingDeliveredIsLostHoweverTheProcessEnds) {
  const auto t = static_cast<std::uint64_t>(host_now());
  static Records late;
  late = Records();
  for (std::uint32_t i = 1; i < 100; ++i) late.add(kernel(t + i, t + i + 1, i));
  const std::vector<std::function<void()>> ends{// Delivered behind main, when other things have been destroyed already.
                                                [] {
                                                  std::atexit([] { fake_cupti::deliver(late); });
                                                  std::exit(0);
                                                },
                                                [] {
                                                  fake_cupti::deliver(late);
                                                  ::_exit(0);
                                                },
                                                [] {
                                                  fake_cupti::deliver(late);
                                                  ::raise(SIGKILL);
                                                },
                                                [] {
                                                  fake_cupti::deliver(late);
                                                  std::abort();
                                                }};
  for (const auto& end : ends) {
    (void)run([&](Collector&, Spool&) { end(); });
    EXPECT_EQ(timeline().joined.device_spans, 99);
  }
}

TEST_F(InAChild, PutsDriftingAndSteppingClocksOnTheHostsWithinItsBound) {
  struct Planted {
    double drift;
    std::int64_t step_ns;
  };
  for (const Planted& planted : {Planted{0, 0}, Planted{3e-4, 0}, Planted{-1e-3, 0}, Planted{0, 5'000'000},
                                 Planted{0, -2'000'000}, Planted{1e-4, -70'000}}) {
    const std::int64_t zero = host_now();
    const std::int64_t stepped_at = zero + 35'000'000;
    const auto device = [=](std::int64_t host) {
      return static_cast<std::uint64_t>(1'000'000'000 + (host - zero) +
                                        std::llround(planted.drift * static_cast<double>(host - zero)) +
                                        (host > stepped_at ? planted.step_ns : 0));
    };
    std::vector<std::int64_t> truths;
    ASSERT_EQ(run([&](Collector& collector, Spool& spool) {
                // Time passes here: the looks are at the machine's own clock, twenty of them over 70 ms.
                Lane lane(spool);
                std::uint32_t correlation = 0;
                for (std::int64_t host = zero; host <= zero + 70'000'000; host += 3'500'000) {
                  lane.add({.kind = EventKind::clocks,
                            .begin_ns = static_cast<std::int64_t>(device(host)),
                            .end_ns = host - 300,
                            .bytes = host + 500});
                  Records records;
                  for (std::int64_t at = host + 10'000; at < host + 3'400'000; at += 200'000)
                    records.add(kernel(device(at), device(at) + 1, ++correlation));
                  fake_cupti::set_clock([&] { return device(host_now()); });
                  fake_cupti::answer("cuptiGetTimestamp", CUPTI_ERROR_NOT_READY);
                  fake_cupti::deliver(records);
                }
                (void)collector;
              }),
              0);
    const Result<SpoolContent> content = read_spool(path());
    ASSERT_TRUE(content.has_value());
    SpoolContent own = *content;
    // The look that start() took was at the fake's clock as it was before.
    std::erase_if(own.events, [&](const Event& e) { return e.kind == EventKind::clocks && e.begin_ns < 1; });
    own.events.erase(std::remove_if(own.events.begin(), own.events.end(),
                                    [&](const Event& e) {
                                      return e.kind == EventKind::clocks && std::abs(e.bytes - e.end_ns - 800) > 0;
                                    }),
                     own.events.end());
    std::uint32_t correlation = 0;
    std::map<std::uint32_t, std::int64_t> truth;
    for (std::int64_t host = zero; host <= zero + 70'000'000; host += 3'500'000)
      for (std::int64_t at = host + 10'000; at < host + 3'400'000; at += 200'000) truth[++correlation] = at;
    const std::vector<Process> processes{{own, {}}};
    const Timeline made = timeline_of(processes);
    ASSERT_EQ(made.joined.device_spans, static_cast<std::int64_t>(truth.size()));
    // Spans carry no correlation; their order is that of the truth but for where the clock was set back.
    std::vector<std::int64_t> found, expected;
    for (const Span& span : spans_of(made.loaded.trace)) found.push_back(span.begin_ns);
    for (const auto& [number, at] : truth) expected.push_back(at);
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_LE(std::abs(found[i] - expected[i]), made.joined.clock_bound_ns)
          << planted.drift << " " << planted.step_ns;
  }
}

TEST_F(InAChild, SaysThatAnotherProfilerHoldsCupti) {
  const pid_t child = ::fork();
  if (child == 0) {
    Result<std::unique_ptr<Spool>> spool = Spool::create(path());
    fake_cupti::answer("cuptiSubscribe", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    const Result<Collector*> collector = Collector::start(fake(), *spool->release());
    const bool right = !collector && collector.error().code == Errc::unavailable &&
                       collector.error().what.find("another profiler") != std::string::npos;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(InAChild, SaysThatPrivilegesAreMissing) {
  const pid_t child = ::fork();
  if (child == 0) {
    Result<std::unique_ptr<Spool>> spool = Spool::create(path());
    fake_cupti::answer("cuptiActivityEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    const Result<Collector*> collector = Collector::start(fake(), *spool->release());
    const bool right = !collector && collector.error().code == Errc::unavailable &&
                       collector.error().help.find("NVreg_RestrictProfilingToAdminUsers") != std::string::npos;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(InAChild, RecordsNothingWhilePaused) {
  ASSERT_EQ(run([&](Collector& collector, Spool&) {
              collector.pause();
              if (fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) ::_exit(1);
              collector.resume();
              if (!fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) ::_exit(2);
            }),
            0);
}

}  // namespace
}  // namespace shard::profiler
