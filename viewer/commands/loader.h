// Opens files in the background, and again when they grow.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "viewer/commands/load_session.h"

namespace shard::view {

/// A thread of its own reads the files at once and then looks twice a second whether one has changed. All calls from
/// one thread.
class Loader {
 public:
  /// `wake` is called, from the loader's thread, when there is something to take.
  Loader(Sources sources, std::function<void()> wake);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  /// Waits for a file that is being read.
  ~Loader();

  /// The session read last, once; what was not taken in time is replaced by the next.
  [[nodiscard]] std::optional<Result<Session>> take();

  struct Progress {
    std::string what = "starting";
    double share = 0;
  };
  [[nodiscard]] Progress progress();

 private:
  void run(const Sources& sources);

  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  Progress progress_;
  std::optional<Result<Session>> ready_;
  std::thread thread_;
};

}  // namespace shard::view
