// What the bytes of a buffer mean at a moment of the plan: pieces of values, parameters, gradients and state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan::verification {

enum class Meaning : std::uint8_t {
  nothing,         ///< not written in this lifetime
  scratch,         ///< written, means nothing
  value,           ///< what: ValueId; step: micro-step
  value_gradient,  ///< what: 0; step: micro-step; tag: sum of the contributions' hashes
  master,          ///< what: flat; fp32 parameters beside the stored ones; tag as parameter
  parameter,       ///< what: flat; tag: 0 as the step found it, 1 after the optimizer step
  padding,         ///< what: flat; behind its last parameter
  gradient,        ///< what: flat; tag: node of the gradient tree (GradientNodes)
  zero,            ///< newborn optimizer state
  moment,          ///< what: flat; tag: which
  counts,          ///< steps per parameter
  scalars,         ///< learning rate and the like
  loss,            ///< of micro-step `step` on this rank
  all_losses,      ///< of all ranks, in rank order
  mean_loss,
  knobs,      ///< of the scaler and of clipping
  facts,      ///< about this rank's gradients; tag: inspections so far, start: slot
  all_facts,  ///< of all members; tag: inspections of this rank
  scaler,     ///< tag: 0 as the step found it, 1 as the next one will
  loss_scale,
  control,  ///< what this step decided
  foreign,  ///< what only other ranks know
};
[[nodiscard]] const char* to_string(Meaning meaning);

/// The meaning of consecutive elements: `start` is where in its source (value, flat, ...) the first of them lies.
struct Content {
  Meaning meaning = Meaning::nothing;
  std::int32_t what = 0;
  std::int32_t step = -1;
  std::int64_t start = 0;
  std::uint64_t tag = 0;
  friend bool operator==(const Content&, const Content&) = default;
  /// The content `elems` elements further on.
  [[nodiscard]] Content after(std::int64_t elems) const {
    Content c = *this;
    c.start += elems;
    return c;
  }
};

/// "value 'h.0.ln_1' of micro-step 2", for messages.
[[nodiscard]] std::string describe(const Plan& plan, const Content& content);

struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Content content{};
};

/// The pieces of one buffer, ascending, gaps are Meaning::nothing. Neighbours that continue each other are one piece.
class Contents {
 public:
  void clear() { pieces_.clear(); }
  /// The pieces inside [begin, end), cut to fit; gaps appear as pieces that mean nothing.
  [[nodiscard]] std::vector<Piece> inside(std::int64_t begin, std::int64_t end) const;
  /// Whether [begin, end) is one piece that means `content`.
  [[nodiscard]] bool is(std::int64_t begin, std::int64_t end, const Content& content) const;
  void write(std::int64_t begin, std::int64_t end, const Content& content);
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  /// Lets `change` alter the content of every piece.
  template <class Change>
  void for_each(Change change) {
    for (Piece& piece : pieces_) change(piece.content);
  }

 private:
  std::vector<Piece> pieces_;
};

}  // namespace shard::plan::verification
