// Where a run of this process is: for whoever must say so while the run goes on. One per process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace shard {

enum class RunPart : std::uint8_t {
  none,
  start,
  joining,
  preparation,
  arenas,
  creation,
  step,
  evaluation,
  save,
  digest,
  results,
  end
};

struct RunPlace {
  RunPart part = RunPart::none;
  std::int64_t step = 0;  ///< of RunPart::step, ::evaluation and ::save, counted from 1 as it is printed
  friend bool operator==(RunPlace, RunPlace) = default;
};

/// "step 12", "creation"; "" for none.
[[nodiscard]] std::string to_string(RunPlace place);

/// Any thread may ask; one thread at a time runs and sets.
void set_run_place(RunPlace place);
[[nodiscard]] RunPlace run_place();

/// A call of a library that returns when other processes do their part and has no deadline of its own (MPI_Init). As
/// long as it lives others can see which, and since when. Not nested.
class BlockingCall {
 public:
  /// `name`: a literal.
  explicit BlockingCall(const char* name);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  struct Now {
    const char* name = nullptr;  ///< nullptr: none
    std::chrono::steady_clock::time_point since{};
  };
  [[nodiscard]] static Now now();
};

}  // namespace shard
