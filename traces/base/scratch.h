// Private directories that are gone when their owner is, content and all.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "traces/base/result.h"
#include "traces/base/stop.h"

namespace shard {

class Scratch {
 public:
  /// A new directory PLACE/.shardscope-ranks-XXXXXX, mode 0700, locked as long as this lives. Such directories of the
  /// same user that nobody holds a lock on (their process was killed before it could clean up) are removed first.
  /// Removed as well when the process is stopped (traces/base/stop.h).
  [[nodiscard]] static std::optional<Scratch> make(const std::string& place);
  /// The same in the folder for temporary files (TMPDIR). Errc::cannot_create, saying whose files have no place:
  /// "the run's files".
  [[nodiscard]] static Result<Scratch> make_temporary(std::string_view whose);
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;
  ~Scratch();

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The descriptor that holds the lock. A child that inherits it keeps the directory in use until it ends.
  [[nodiscard]] int lock() const { return lock_; }

 private:
  Scratch(std::string path, int lock);
  std::string path_;
  int lock_ = -1;
  stop::Registration at_stop_;
};

}  // namespace shard
