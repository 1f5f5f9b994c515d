// How far the device is behind the host: when what was given to it is seen to be over.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace shard::standin {

/// Events, and the host's launches as the clock. A device works while the host goes on: memory that another stream uses
/// comes back to PyTorch's allocator when an event behind that use is over. Synchronised.
class Behind {
 public:
  /// Until the host waits.
  static constexpr std::int64_t kUntilWaited = -1;
  /// Who asks again and again, and launches nothing, waits.
  static constexpr int kPatience = 1000;

  /// `launches`: an event is over when so many kernels were launched after it; 0: at once.
  explicit Behind(std::int64_t launches) : launches_(launches) {}

  void launch();
  void record(const void* event);
  void forget(const void* event);
  /// The host waits, for whichever part: all that was given is over.
  void wait();
  [[nodiscard]] bool is_over(const void* event);

 private:
  [[nodiscard]] bool at_once() const { return launches_ == 0; }

  const std::int64_t launches_;
  std::mutex mutex_;
  std::unordered_map<const void*, std::int64_t> recorded_;  ///< at which launch
  std::int64_t now_ = 0;
  int asked_ = 0;  ///< in a row, and it was not over
};

/// As SHARDSCOPE_STANDIN says ("behind=N").
[[nodiscard]] Behind& behind();

}  // namespace shard::standin
