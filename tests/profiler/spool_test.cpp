// The spool: nothing that was added is lost, however the process ends, and what found no room is counted.
#include "profiler/spool/spool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "profiler/spool/read_spool.h"
#include "traces/base/scratch.h"

namespace shard::profiler {
namespace {

class SpoolFile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(folder_.has_value()); }
  [[nodiscard]] std::filesystem::path path() const { return std::filesystem::path(folder_->path()) / "events"; }
  [[nodiscard]] std::unique_ptr<Spool> make(std::int64_t most = std::int64_t{64} << 20) const {
    Result<std::unique_ptr<Spool>> spool = Spool::create(path(), {.most = Bytes{most}});
    EXPECT_TRUE(spool.has_value());
    return std::move(*spool);
  }
  [[nodiscard]] SpoolContent read() const {
    Result<SpoolContent> content = read_spool(path());
    EXPECT_TRUE(content.has_value());
    return content ? std::move(*content) : SpoolContent{};
  }

 private:
  std::optional<Scratch> folder_ = Scratch::make(testing::TempDir());
};

Event numbered(std::uint64_t number, std::uint32_t thread = 0) {
  return {.kind = EventKind::kernel, .begin_ns = static_cast<std::int64_t>(number), .id = number, .thread = thread};
}

TEST_F(SpoolFile, GivesBackWhatWasAdded) {
  {
    const auto spool = make();
    const NameNumber name = spool->name("a kernel");
    EXPECT_EQ(spool->name("a kernel"), name);
    EXPECT_NE(spool->name(""), name);
    Lane lane(*spool);
    for (std::uint64_t i = 0; i < 3 * kEventsPerBlock / 2; ++i) {
      Event event = numbered(i);
      event.name = name;
      lane.add(event);
    }
  }
  const SpoolContent content = read();
  ASSERT_EQ(content.events.size(), 3 * kEventsPerBlock / 2);
  for (std::size_t i = 0; i < content.events.size(); ++i) EXPECT_EQ(content.events[i].id, i);
  EXPECT_EQ(content.name_of(content.events[0].name), "a kernel");
  EXPECT_EQ(content.process, ::getpid());
  EXPECT_EQ(content.dropped + content.overwritten + content.names_lost, 0);
}

TEST_F(SpoolFile, KeepsEachThreadsEventsInItsOrder) {
  constexpr std::uint32_t kThreads = 8;
  constexpr std::uint64_t kEach = 20'000;
  {
    const auto spool = make();
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        Lane lane(*spool);
        for (std::uint64_t i = 0; i < kEach; ++i) lane.add(numbered(i, t));
      });
  }
  const SpoolContent content = read();
  EXPECT_EQ(content.dropped, 0);
  std::map<std::uint32_t, std::uint64_t> next;
  for (const Event& event : content.events) ASSERT_EQ(event.id, next[event.thread]++);
  ASSERT_EQ(next.size(), kThreads);
  for (const auto& [thread, count] : next) EXPECT_EQ(count, kEach);
}

TEST_F(SpoolFile, KeepsTheLastAndCountsTheRest) {
  constexpr std::uint64_t kCount = 40 * kEventsPerBlock;
  {
    const auto spool = make(8 * kBlockBytes);
    Lane lane(*spool);
    for (std::uint64_t i = 0; i < kCount; ++i) lane.add(numbered(i));
  }
  const SpoolContent content = read();
  ASSERT_EQ(content.events.size() + static_cast<std::size_t>(content.overwritten), kCount);
  EXPECT_GE(content.events.size(), 7 * kEventsPerBlock);
  EXPECT_EQ(content.events.back().id, kCount - 1);
  for (std::size_t i = 1; i < content.events.size(); ++i) EXPECT_EQ(content.events[i].id, content.events[i - 1].id + 1);
}

TEST_F(SpoolFile, DropsAndCountsWhereEveryBlockIsBeingFilled) {
  std::uint64_t added = 0;
  {
    const auto spool = make(8 * kBlockBytes);
    std::vector<std::unique_ptr<Lane>> lanes;
    for (int i = 0; i < 12; ++i) {
      lanes.push_back(std::make_unique<Lane>(*spool));
      for (int k = 0; k < 100; ++k, ++added) lanes.back()->add(numbered(added));
    }
  }
  const SpoolContent content = read();
  EXPECT_EQ(content.events.size(), 800u);
  EXPECT_EQ(content.dropped, 400);
}

/// Adds events in a child that then ends as it is told to.
void run_child(const std::filesystem::path& path, const std::function<void()>& end) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<std::unique_ptr<Spool>> spool = Spool::create(path);
    if (!spool) ::_exit(3);
    auto* const lane = new Lane(**spool);  // never given back: the process ends in the middle
    const NameNumber name = (*spool)->name("told");
    for (std::uint64_t i = 0; i < 5'000; ++i) {
      Event event = numbered(i);
      event.name = name;
      lane->add(event);
    }
    (void)spool->release();
    end();
    ::_exit(4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
}

TEST_F(SpoolFile, LosesNothingHoweverTheProcessEnds) {
  const std::vector<std::function<void()>> ends{[] { ::_exit(0); }, [] { ::raise(SIGKILL); }, [] { ::raise(SIGTERM); },
                                                [] { std::quick_exit(0); }};
  for (const auto& end : ends) {
    run_child(path(), end);
    const SpoolContent content = read();
    ASSERT_EQ(content.events.size(), 5'000u);
    EXPECT_EQ(content.name_of(content.events.back().name), "told");
  }
}

TEST_F(SpoolFile, TakesNothingFromAForkedChild) {
  {
    const auto spool = make();
    Lane lane(*spool);
    lane.add(numbered(0));
    const pid_t child = ::fork();
    if (child == 0) {
      lane.add(numbered(99));
      ::_exit(spool->prepare());
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    lane.add(numbered(1));
  }
  const SpoolContent content = read();
  ASSERT_EQ(content.events.size(), 2u);
  EXPECT_EQ(content.events[1].id, 1u);
}

SpoolHeader header_of(const std::filesystem::path& path) {
  SpoolHeader header;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof(header));
  return header;
}

TEST_F(SpoolFile, HandsOutWhatWasPreparedBeforeItAsksForMore) {
  const auto spool = make();
  EXPECT_EQ(spool->prepare(), Spool::kAhead);
  EXPECT_EQ(spool->prepare(), 0);
  Lane lane(*spool);
  for (std::uint64_t i = 0; i < Spool::kAhead * kEventsPerBlock; ++i) lane.add(numbered(i));
  EXPECT_EQ(header_of(path()).fresh, static_cast<std::uint32_t>(Spool::kAhead));
  EXPECT_EQ(spool->prepare(), Spool::kAhead);
  EXPECT_EQ(read().events.size(), Spool::kAhead * kEventsPerBlock);
}

TEST_F(SpoolFile, LosesNothingWhereThreadsWriteWhileOthersPrepare) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint64_t kEach = 30'000;
  {
    const auto spool = make();
    std::atomic<bool> done{false};
    std::vector<std::jthread> preparing;
    for (int i = 0; i < 2; ++i)
      preparing.emplace_back([&] {
        while (!done) (void)spool->prepare();
      });
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        Lane lane(*spool);
        for (std::uint64_t i = 0; i < kEach; ++i) lane.add(numbered(i, t));
      });
    threads.clear();
    done = true;
  }
  const SpoolContent content = read();
  EXPECT_EQ(content.dropped + content.overwritten, 0);
  std::map<std::uint32_t, std::uint64_t> next;
  for (const Event& event : content.events) ASSERT_EQ(event.id, next[event.thread]++);
  for (std::uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(next[t], kEach);
}

TEST_F(SpoolFile, PreparesNoMoreThanItsLimit) {
  const auto spool = make(8 * kBlockBytes);
  EXPECT_EQ(spool->prepare(), 8);
  Lane lane(*spool);
  for (std::uint64_t i = 0; i < 20 * kEventsPerBlock; ++i) lane.add(numbered(i));
  EXPECT_EQ(spool->prepare(), 0);
  EXPECT_EQ(read().events.back().id, 20 * kEventsPerBlock - 1);
}

TEST_F(SpoolFile, SaysWhereItCannotBe) {
  const Result<std::unique_ptr<Spool>> spool = Spool::create("/absent/folder/events");
  ASSERT_FALSE(spool.has_value());
  EXPECT_EQ(spool.error().code, Errc::cannot_create);
  EXPECT_NE(spool.error().where.find("/absent/folder"), std::string::npos);
}

TEST_F(SpoolFile, IsReadWhileItGrows) {
  const auto spool = make();
  Lane lane(*spool);
  for (std::uint64_t i = 0; i < 10; ++i) {
    lane.add(numbered(i));
    ASSERT_EQ(read().events.size(), i + 1);
  }
}

}  // namespace
}  // namespace shard::profiler
