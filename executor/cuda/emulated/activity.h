// Who is told what the emulated device does, as a driver tells a profiler: calls, work, memory, nodes of graphs, waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace shard::cuda {

/// A kernel, a copy or a fill. Calls of the host leave no record, as on a card.
struct EmulatedWork {
  enum class Kind : std::uint8_t { none, kernel, copy, fill };
  Kind kind = Kind::none;
  bool from_host = false;  ///< of a copy: pinned or pageable memory
  bool to_host = false;
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  std::string_view name{};  ///< of a kernel; lives as long as the device
  std::int64_t bytes = 0;
  std::uint32_t correlation = 0;  ///< of the call that made it: of a graph's, its launch
  std::uint64_t node = 0;         ///< of the graph that ran; 0: of none
  std::int64_t begin_ns = 0;      ///< of std::chrono::steady_clock
  std::int64_t end_ns = 0;
};

/// An allocation, or its end.
struct EmulatedMemory {
  bool acquired = true;
  bool pinned = false;
  std::uint32_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::uint32_t correlation = 0;
  std::int64_t time_ns = 0;
};

/// Told on the thread that calls the device, whose work also runs there; of several devices on several threads.
class EmulatedActivity {
 public:
  EmulatedActivity() = default;
  EmulatedActivity(const EmulatedActivity&) = delete;
  EmulatedActivity& operator=(const EmulatedActivity&) = delete;
  virtual ~EmulatedActivity() = default;

  /// The number of a call, or of a node: no other has it, whatever the device; never 0.
  [[nodiscard]] virtual std::uint32_t next_correlation() = 0;
  [[nodiscard]] virtual std::uint64_t next_node() = 0;

  /// A call that has returned.
  virtual void called(std::string_view name, std::uint32_t correlation, std::int64_t begin_ns, std::int64_t end_ns) = 0;
  virtual void worked(const EmulatedWork& work) = 0;
  virtual void memory(const EmulatedMemory& memory) = 0;
  /// A node is captured; a node of what is launched is a copy of it.
  virtual void node_made(std::uint64_t node) = 0;
  virtual void node_cloned(std::uint64_t node, std::uint64_t of) = 0;
  /// A stream was told to wait for an event.
  virtual void stream_waits(std::uint32_t device, std::uint32_t stream, std::uint32_t correlation,
                            std::int64_t time_ns) = 0;

  [[nodiscard]] static std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

namespace emulated {

/// A call, from its beginning to its end.
class ToldCall {
 public:
  /// `to` may be null: then nobody is told, and its number is 0.
  ToldCall(EmulatedActivity* to, std::string_view name) : to_(to), name_(name) {
    if (to_ == nullptr) return;
    number_ = to_->next_correlation();
    begin_ns_ = EmulatedActivity::now_ns();
  }
  ToldCall(const ToldCall&) = delete;
  ToldCall& operator=(const ToldCall&) = delete;
  ~ToldCall() {
    if (to_ != nullptr) to_->called(name_, number_, begin_ns_, EmulatedActivity::now_ns());
  }
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  EmulatedActivity* to_;
  std::string_view name_;
  std::uint32_t number_ = 0;
  std::int64_t begin_ns_ = 0;
};

}  // namespace emulated
}  // namespace shard::cuda
