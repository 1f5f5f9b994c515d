// Who may be inside an object that works with threads of its own: one call at a time, in the process that made it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include <sys/types.h>

#include <shardscope/result.h>

namespace shardscope {

/// Held by the object and by each call that is inside, so that it outlives both. Never blocks a call: who may not enter
/// is told why. Any thread.
class Gate {
 public:
  /// A call that is inside; it leaves when this goes.
  class Inside {
   public:
    explicit Inside(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
    Inside(Inside&&) noexcept = default;
    Inside& operator=(Inside&&) = delete;
    ~Inside();

   private:
    std::shared_ptr<Gate> gate_;
  };

  Gate();

  /// `gate` is null where the object was moved from; `object` names it. Errors: retryable while another call is inside;
  /// contradiction of an object that was moved from or is being destroyed, and in a process that forked off the one
  /// that made it, which has none of its threads.
  [[nodiscard]] static Result<Inside> enter(std::shared_ptr<Gate> gate, const char* object);

  /// Lets nobody in any more and waits for the call that is inside. Whether what the gate stands before may be torn
  /// down here: not in a forked process, where its threads cannot be joined.
  [[nodiscard]] bool close();

 private:
  enum class State : int { free, busy, closed };
  std::atomic<State> state_{State::free};
  pid_t owner_;
};

/// Of a rank that is asked about: contradiction where there is none of that number.
[[nodiscard]] Result<void> check_rank(int rank, int ranks);

}  // namespace shardscope
