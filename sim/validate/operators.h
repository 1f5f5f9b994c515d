// Operators as lists: what each takes, keeps for backward and gives back. A block's list runs forward, again, backward.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/validate/memory_stream.h"

namespace shard::validate {

/// One operator of a list. Values are numbered: 0 is the list's input, i + 1 what operator i gives.
struct Operator {
  std::vector<int> inputs{};
  std::int64_t output = 0;                      ///< bytes; 0: a view of its first input
  std::vector<int> saved{};                     ///< values that backward reads
  std::int64_t statistics = 0;                  ///< bytes beside them, of its own
  std::int64_t forward_workspace = 0;           ///< bytes, freed at its end
  std::int64_t backward_workspace = 0;          ///< bytes, freed at the end of its backward
  std::vector<std::int64_t> input_gradients{};  ///< bytes, one an input; 0: the output's own gradient goes on
  std::int64_t weight_gradient = 0;             ///< bytes
  bool kept = false;                            ///< a selective policy keeps its output
};

/// What a list left behind for its backward.
struct Kept {
  Held input = 0;
  std::vector<Held> values;              ///< by value; 0: gone
  std::vector<Held> saved;               ///< held once each, operators in order
  std::vector<std::size_t> first_saved;  ///< of each operator in `saved`
  bool again = false;                    ///< its operators run again before backward
};

enum class Keep : std::uint8_t { all, input, marked };

/// Runs a list. `input` stays its caller's; what it returns is held by the caller.
[[nodiscard]] Held run_forward(MemoryStream& memory, const std::vector<Operator>& list, Held input, Keep keep,
                               Kept& kept);

/// Runs backward, again forward before it where that is needed. Takes `gradient` over; gives the input's, held. The
/// weights' gradients are appended to `weights`.
[[nodiscard]] Held run_backward(MemoryStream& memory, const std::vector<Operator>& list, Kept& kept, Held gradient,
                                std::vector<Held>& weights);

}  // namespace shard::validate
