// The thread that reads.
#include "viewer/commands/loader.h"

#include <chrono>
#include <utility>

#include "viewer/commands/follow.h"

namespace shard::view {
namespace {

constexpr std::chrono::milliseconds kLookAgain(500);

}  // namespace

Loader::Loader(Sources sources, std::function<void()> wake)
    : wake_(std::move(wake)), thread_([this, all = std::move(sources)] { run(all); }) {}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void Loader::run(const Sources& sources) {
  FileWatch watch(sources.traces);
  bool read = true;
  while (true) {
    if (read) {
      Result<Session> session = load_session(sources, [this](const std::string& what, double share) {
        const std::lock_guard lock(mutex_);
        progress_ = {what, share};
      });
      {
        const std::lock_guard lock(mutex_);
        ready_ = std::move(session);
      }
      wake_();
    }
    std::unique_lock lock(mutex_);
    if (stopped_.wait_for(lock, kLookAgain, [this] { return stop_; })) return;
    read = watch.changed();
  }
}

std::optional<Result<Session>> Loader::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ready_, std::nullopt);
}

Loader::Progress Loader::progress() {
  const std::lock_guard lock(mutex_);
  return progress_;
}

}  // namespace shard::view
