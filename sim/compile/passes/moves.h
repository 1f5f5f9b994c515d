// Moves between memories: what the parts of pass `place` have in common.
#pragma once

#include <string_view>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan {

/// How many copies take content from one memory to the other: disk and device meet in host memory.
[[nodiscard]] int hops(Memory from, Memory to);
/// Where an optimizer step on state that rests in `memory` runs.
[[nodiscard]] constexpr Memory stepped_in(Memory memory) {
  return memory == Memory::disk ? Memory::host : memory;
}

class Mover {
 public:
  /// `plan` outlives it.
  explicit Mover(Plan& plan) : plan_(plan) {}

  /// A transient buffer in `memory` for `bytes` of what `like` holds, of its type, category and unit. `name`: in the
  /// plan's pool.
  BufferId beside(BufferId like, Memory memory, std::int64_t bytes, std::string_view name);

  /// Elements of `from` to `to`, `name` in front of the resting buffer's name. Takes two copies between device and
  /// disk.
  void move(std::vector<Op>& out, Operand from, Operand to, std::string_view verb, Part part,
            std::int32_t micro_step = -1);

  /// Appends `op` with all operands in `memory`: those that are elsewhere are brought in front of it and, where it
  /// writes them, taken back behind it.
  void run_in(std::vector<Op>& out, Op op, Memory memory);

  /// What stands in a move's place on ranks that lack it, because another one owns `flat`: ids stay equal, and pass
  /// schedule treats it as that move.
  static void lack(std::vector<Op>& out, std::int32_t flat, Stream stream, Part part, std::int32_t micro_step = -1);

  /// What run_in() brought last for this buffer; the buffer itself when it brought nothing.
  [[nodiscard]] Operand brought(const Operand& o) const;

 private:
  Plan& plan_;
  struct Brought {
    Operand home;
    BufferId buffer;
  };
  std::vector<Brought> brought_;
};

}  // namespace shard::plan
