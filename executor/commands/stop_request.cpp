// A flag that the thread that takes signals sets.
#include "executor/commands/stop_request.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

namespace shard::commands {
namespace {

/// Past std::cerr, which another thread may be printing to.
void say_heard(int signal) {
  const std::string text = std::string("shardscope: signal: ") + strsignal(signal) +
                           ": the run is saved behind this step, and ends; a second signal ends it at once\n";
  static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
}

}  // namespace

void StopRequest::listen(Says says, std::vector<pid_t> enders) {
  registration_ = stop::at_first_signal(
      [this, says](int signal) {
        signal_ = signal;
        if (says == Says::request) say_heard(signal);
      },
      [enders = std::move(enders)](pid_t sender) { return std::ranges::find(enders, sender) == enders.end(); });
}

StopRequest::~StopRequest() {
  registration_ = {};
  stop::end_by(end_by_);
}

}  // namespace shard::commands
