// Says when recording is to be on: while a range that is wanted is open.
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "profiler/ranges/wanted_ranges.h"

struct nvtxEventAttributes_v2;

namespace shard::profiler {

/// A wanted range that has ended.
struct EndedRange {
  std::string name;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int32_t step = 0;
};

/// Hears NVTX's functions as CUPTI calls them. Any thread. Ranges that are pushed belong to their thread and domain,
/// those that are started to the process.
class RangeSwitch {
 public:
  struct Hooks {
    std::function<void(bool)> turn;                 ///< whether a wanted range is open now
    std::function<std::int64_t()> now;              ///< the clock of the events
    std::function<void(const std::string&)> begun;  ///< a wanted range of this name, in the thread that began it
    std::function<void(const EndedRange&)> ended;   ///< in the thread that ended it
  };
  RangeSwitch(WantedRanges wanted, Hooks hooks) : chooser_(std::move(wanted)), hooks_(std::move(hooks)) {}

  void heard(CUpti_CallbackId id, const CUpti_NvtxData& data);
  /// The functions that are to be heard.
  [[nodiscard]] static std::span<const CUpti_CallbackId> functions();

 private:
  struct Open {
    bool wanted = false;
    std::string name{};
    std::int64_t begin_ns = 0;
    std::int32_t step = 0;
  };
  [[nodiscard]] std::string text_of(const nvtxEventAttributes_v2* attributes);
  [[nodiscard]] Open open(std::string name);
  void close(const Open& range);
  void push(const void* domain, std::string name);
  void pop(const void* domain);
  void started(std::uint64_t id, std::string name);
  void ended(std::uint64_t id);

  std::mutex mutex_;  ///< of all but what hooks do
  RangeChooser chooser_;
  Hooks hooks_;
  std::map<std::uint64_t, Open> started_;          ///< wanted ones
  std::map<const void*, std::string> registered_;  ///< texts, by the handle that NVTX gave them
  std::mutex turning_;                             ///< open_ and what recording does agree
  int open_ = 0;                                   ///< wanted ranges
};

}  // namespace shard::profiler
