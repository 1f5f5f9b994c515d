// Where a program's threads put events: a file in memory that outlives the process, however that ends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "profiler/spool/event.h"
#include "profiler/spool/layout.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::profiler {

struct SpoolOptions {
  Bytes most{std::int64_t{256} << 20};  ///< of events; the oldest make room for the newest. At least eight blocks
  std::int32_t rank = -1;               ///< of a distributed program; -1: none
  bool paused = false;                  ///< until somebody else says so (pause_spool)
};

/// One per process. What an event is copied into belongs to the kernel's page cache: the process may end by exit,
/// _exit or any signal, and what was added is there. The file grows block by block and never beyond its limit; where
/// the disk is full it stays as it is and old events make room.
///
/// A forked child has the parent's spool but may not write there: its lanes take nothing (is_own()).
class Spool {
 public:
  /// `path` for events, `path` + ".names" for texts; replaced where they are there. Errc::cannot_create, Errc::io.
  [[nodiscard]] static Result<std::unique_ptr<Spool>> create(const std::filesystem::path& path,
                                                             const SpoolOptions& options = {});
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  /// Lanes have ended before.
  ~Spool();

  /// The number of a text; equal texts have one. Any thread; takes a lock: for texts that are said once.
  [[nodiscard]] NameNumber name(std::string_view text);
  /// Whoever delivers events has lost some.
  void count_dropped(std::uint64_t events);
  /// Whether whoever profiles wants nothing recorded for now. The spool takes what it is given all the same.
  [[nodiscard]] bool is_paused() const;
  /// Has up to kAhead new blocks ready, so that threads that want one get it without asking the kernel; how many were
  /// missing. For a thread of whoever records, now and then; without it threads make theirs themselves.
  int prepare();
  static constexpr int kAhead = 16;
  /// False in a child that was forked.
  [[nodiscard]] bool is_own() const { return process_ == current_process(); }

 private:
  friend class Lane;
  struct Block {
    BlockHeader header;
    Event events[kEventsPerBlock];
  };

  Spool(int file, int names, std::uint32_t blocks);
  [[nodiscard]] static std::int32_t current_process();
  [[nodiscard]] Result<void> map(const std::filesystem::path& path, std::uint32_t blocks, const SpoolOptions& options);
  /// A block to fill; null where every block is being filled.
  [[nodiscard]] Block* take(std::uint32_t thread);
  [[nodiscard]] Block* take_prepared();
  [[nodiscard]] Block* take_fresh();
  [[nodiscard]] Block* take_again();
  /// Asks for room for a block, and for its pages.
  [[nodiscard]] bool has_room(std::uint32_t number);
  [[nodiscard]] Block* block(std::uint32_t number);

  int file_;
  int names_;
  std::int32_t process_;
  std::size_t mapped_bytes_ = 0;
  std::byte* mapping_ = nullptr;
  SpoolHeader* header_ = nullptr;
  std::array<std::atomic<Block*>, kAhead> prepared_{};  ///< nobody fills them yet
  std::mutex mutex_;
  std::map<std::string, NameNumber, std::less<>> numbers_;
};

/// Tells the process that fills this spool; it looks now and then. Nothing where there is no such file.
void pause_spool(const std::filesystem::path& path, bool paused);

/// One thread's way into a spool. Never blocks and never allocates: it asks for a block every few thousand events,
/// without a lock, and counts what finds none.
class Lane {
 public:
  explicit Lane(Spool& spool);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  void add(const Event& event) {
    if (block_ == nullptr || count_ == kEventsPerBlock || !spool_.is_own()) {
      if (!next_block()) return;
    }
    block_->events[count_] = event;
    std::atomic_ref(block_->header.count).store(++count_, std::memory_order_release);
  }

 private:
  /// False where the event is to be dropped; it has been counted.
  [[nodiscard]] bool next_block();
  void give_back();

  Spool& spool_;
  std::uint32_t thread_;
  Spool::Block* block_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t refused_ = 0;  ///< events since a block was last looked for in vain
};

}  // namespace shard::profiler
