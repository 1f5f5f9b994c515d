// A rank's line to the parent that started it: takes over the parent's stdout and stderr, and reports its end.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "executor/launch/role.h"
#include "traces/base/result.h"

namespace shard {

/// Closing it (or dying) tells the parent that the rank is gone. Any thread may speak.
class ParentLine {
 public:
  /// Connects, says which rank this is, and makes the parent's stdout and stderr this process's own, so that output
  /// does not pass through the launcher. Errc::unavailable when the parent is gone.
  [[nodiscard]] static Result<std::unique_ptr<ParentLine>> connect(const Role& role);
  ParentLine(const ParentLine&) = delete;
  ParentLine& operator=(const ParentLine&) = delete;
  ~ParentLine();

  /// The last word: the exit code this rank will return, and what a user should read. The first one counts. The parent
  /// prints one message for all ranks, so a rank that has reported prints nothing itself.
  void report(int exit_code, std::string_view message);
  /// For a rank that has reported code 75, since it only noticed a fault: lets the launcher see the rank at fault end
  /// first, so that it knows by which signal. Half a second at most.
  void let_others_end_first();
  /// For a rank that is stopped and has reported: nothing reaches stderr any more, and the other ranks get a moment to
  /// fall silent too before this one goes, since MPI complains in those of a rank that is gone.
  void fall_silent();
  /// The file for this rank's flight recorder; -1 where the parent gave none. Owned by this.
  [[nodiscard]] int recorder() const { return recorder_; }
  /// Says that this rank lives, and where its run is (run_place.h). Never blocks. False when the parent is gone.
  [[nodiscard]] bool beat();
  /// The signal by which the parent asks this rank to end; 0: it has not, or has been heard. Never blocks.
  [[nodiscard]] int take_request();
  /// The parent's process.
  [[nodiscard]] pid_t parent() const;

 private:
  explicit ParentLine(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
  int recorder_ = -1;
};

}  // namespace shard
