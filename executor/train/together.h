// Work that takes as long as a disk does, on all ranks at once, none of which takes another for dead meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "traces/base/result.h"

namespace shard::train {

/// A rank's work on a thread of its own. Its outcome is that of all ranks. They begin it, ask for it and wait for it
/// together. The destructor waits for the thread, not for the others.
class JointWork {
 public:
  enum class Kind : std::uint8_t {
    awaited,  ///< nothing else is to be done
    beside,   ///< a run goes on, which needs the processors more
  };
  /// Begins. What `work` refers to outlives this; so does the communicator.
  JointWork(Communicator& communicator, std::function<Result<std::string>()> work, Kind kind);

  /// Whether all ranks have done theirs, one exchange between them. Errors: those of the exchange.
  [[nodiscard]] Result<bool> is_done();
  /// What each rank says, or the first error of one; the same on all ranks. While it waits the ranks go on telling each
  /// other that they are alive. Called once.
  [[nodiscard]] Result<std::vector<std::string>> wait();

 private:
  [[nodiscard]] Result<bool> ask(std::chrono::milliseconds patience);

  Communicator& communicator_;
  std::future<Result<std::string>> own_;
  std::string said_;                ///< to the others
  std::vector<std::string> all_{};  ///< by rank, what was said last
};

/// Does `work` and waits for it. All ranks call it.
[[nodiscard]] Result<std::vector<std::string>> together(Communicator& communicator,
                                                        const std::function<Result<std::string>()>& work);

}  // namespace shard::train
