// What the recorders of a run that broke say: who is at fault, where it was, and what the others wait in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/flight/read_recorder.h"

namespace shard::flight {

/// Where a rank was behind the last event of its recorder.
struct Position {
  std::optional<Event> last{};      ///< none: nothing is recorded
  std::optional<Event> op{};        ///< the last op that began
  std::optional<Event> awaited{};   ///< the collective that it waits for, the oldest in flight
  std::optional<Event> landed{};    ///< the last collective that has
  std::optional<Event> next_out{};  ///< the oldest collective in flight, whether it is waited for or not
};
[[nodiscard]] Position position_of(const Recording& recording);

/// Whether it has started this collective of another rank.
[[nodiscard]] bool has_started(const Recording& recording, const Event& collective);

/// "step 17, backward of h.3"; "" where nothing is recorded.
[[nodiscard]] std::string place_text(const Recording& recording);
/// "collective 431 (all-gather chunk 12)".
[[nodiscard]] std::string collective_text(const Recording& recording, const Event& collective);

/// Without a rank the recordings say who it is, where their launcher saw it; else they tell by who waits for whom.
struct Fault {
  std::optional<std::int32_t> dead{};
  std::vector<std::int32_t> silent{};    ///< ranks that live and are not heard of
  std::optional<std::int64_t> now_ns{};  ///< of the steady clock, where it is still the recorders'
};

/// One sentence:
///
///   rank 2 died in step 17, backward of h.3, before collective 431 (all-gather chunk 12); ranks 0, 1 wait in it; rank
///   3 was still at work rank 2 has made no progress for 60 s in step 17, in forward of h.5; ranks 0, 1, 3 wait for it
///   in collective 431 (reduce-scatter block 5)
///
/// At fault, where nobody is known to have died or to be silent, are those that have not started a collective in which
/// others wait; where all have, those that do something else meanwhile, or wait in one that all others have behind
/// them. "" where the recorders do not say.
[[nodiscard]] std::string verdict(std::span<const Recording> recordings, const Fault& fault);

/// What one rank's recorder says of it: "rank 0 is in step 17, backward of h.3, and waits in collective 431 (...)".
[[nodiscard]] std::string own_words(const Recording& recording);

}  // namespace shard::flight
