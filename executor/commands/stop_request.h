// --save-at-exit: the first signal asks a run to end behind the step that runs, in whatever process it comes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <vector>

#include "traces/base/stop.h"

namespace shard::commands {

/// While it lives the first signal of this process is that request (stop::at_first_signal), and the process ends in its
/// own way unless end_by() says otherwise.
class StopRequest {
 public:
  enum class Says {
    nothing,
    request,  ///< on stderr that it was heard
  };

  StopRequest() = default;
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest();

  /// `enders`: processes whose signals end this one at once, since they have another way to ask (stop::ask).
  void listen(Says says, std::vector<pid_t> enders = {});
  /// That came, or with which stop::ask was called; 0: none so far. Any thread.
  [[nodiscard]] int signal() const { return signal_; }
  /// The process dies of `signal`, which another may have had.
  void end_by(int signal) { end_by_ = signal; }

 private:
  std::atomic<int> signal_ = 0;
  int end_by_ = 0;
  stop::Registration registration_;
};

}  // namespace shard::commands
