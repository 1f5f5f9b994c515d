// Has CUPTI record what this process does on GPUs, and puts it into a spool.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profiler/cupti/functions.h"
#include "profiler/ranges/wanted_ranges.h"
#include "profiler/spool/spool.h"
#include "traces/base/result.h"

namespace shard::profiler {

struct CollectorOptions {
  bool paused = false;                                       ///< begins so, until resume()
  bool memory = true;                                        ///< allocations and pools
  bool calls = true;                                         ///< of the runtime and the driver
  bool ranges = true;                                        ///< NVTX
  bool environment = true;                                   ///< clocks, temperature, power
  WantedRanges wanted{};                                     ///< recording is on while one of these is open
  std::int64_t most_buffer_bytes = std::int64_t{256} << 20;  ///< that CUPTI fills; beyond them it drops and counts
};

/// CUPTI has one per process: a second start() is refused. It is never destroyed, since CUPTI delivers until the
/// process is gone. What it calls from its own threads neither waits for the program nor makes it wait: a buffer that
/// there is no room for is refused, which CUPTI counts as dropped records.
class Collector {
 public:
  /// Errc::unavailable where another profiler holds CUPTI, where privileges are missing, or no driver is there; the
  /// program is to go on. Kinds that this CUPTI does not know are left out and told by left_out(). `spool` is never
  /// destroyed either.
  [[nodiscard]] static Result<Collector*> start(const CuptiFunctions& cupti, Spool& spool,
                                                const CollectorOptions& options = {});
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Has everything delivered that is complete; `all`: also what is not, at the end of a program.
  void flush(bool all = false);
  /// A look at both clocks: to be taken now and then, since device times between two are as exact as they are near.
  void look_at_clocks();
  /// Nothing is recorded from here on, until resume(), but allocations and pools, which are few: without them nobody
  /// could say later what is in use.
  void pause();
  void resume();
  /// Stops recording where no wanted range is open any more. It is not done at the range's end: work that was launched
  /// in it may still run, the program would wait, and the next range may begin at once. What is recorded meanwhile is
  /// left to who reads the ranges.
  void settle();

  /// Work that this thread causes until pop() belongs to `id`: it comes with calls, and with nodes of a graph that is
  /// captured. Nests.
  void push(std::uint64_t id);
  void pop();

  /// "cuptiActivityEnable of memory pools: CUPTI_ERROR_...".
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  Collector(const CuptiFunctions& cupti, Spool& spool, const CollectorOptions& options);
  [[nodiscard]] Result<void> begin();
  void enable_kinds(bool paused);
  void listen_to_ranges();
  void turn(bool inside);
  /// Under `switching`.
  void switch_on();
  void switch_off();

  static void give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records);
  static void take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                          std::size_t filled);
  static void heard(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  void take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t filled);
  /// A range that CUPTI tells, too: with its beginning or without.
  [[nodiscard]] bool is_told(const Event& event) const;
  void node(CUpti_CallbackId id, const CUpti_ResourceData& data);

  struct State;
  CuptiFunctions cupti_;
  Spool& spool_;
  CollectorOptions options_;
  std::vector<std::string> left_out_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::unique_ptr<State> state_;
};

}  // namespace shard::profiler
