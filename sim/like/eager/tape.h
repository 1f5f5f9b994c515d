// What a running program takes from its allocator and gives back, written down as a plan.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/plan.h"
#include "sim/like/passes.h"

namespace shard::like::eager {

/// What runs, for names. Literals, or kept by the tape.
struct Place {
  std::string_view module{};      ///< "model.layers.0.mlp"
  std::string_view op = "start";  ///< "mm"
  std::int32_t block = -1;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Writes a plan's ops in the order in which a program runs: every op says what it takes, then what it gives back. A
/// program that takes something after giving something back is another op of the same name.
class Tape {
 public:
  /// Borrows both. Only the phases and buffers of `plan` are written.
  Tape(plan::Plan& plan, std::vector<Mark>& marks) : plan_(plan), marks_(marks) {}

  /// What follows is of this phase; phases begin in the plan's order.
  void begin_phase(Phase phase);
  /// What follows is of this part of the step, and where nothing else is said, of this category.
  void set_part(Part part, Category category);
  void set_module(std::string_view module, std::int32_t block) {
    place_.module = module;
    place_.block = block;
  }
  void begin_op(std::string_view name) { place_.op = name; }
  [[nodiscard]] const Place& place() const { return place_; }
  void set_place(const Place& place) { place_ = place; }

  [[nodiscard]] BufferId take(Bytes bytes);
  /// What is taken from now on is of this stream's blocks; 0 is the program's own.
  void on_stream(std::uint8_t stream) { stream_ = stream; }
  /// By buffer: whose block it is.
  [[nodiscard]] const std::vector<std::uint8_t>& streams() const { return streams_; }
  void give_back(BufferId buffer);
  void set_category(BufferId buffer, Category category) {
    if (buffer.valid()) plan_.buffer(buffer).category = category;
  }
  void set_name(BufferId buffer, std::string_view name) {
    if (buffer.valid()) plan_.buffer(buffer).name = name;
  }
  /// `before`, the name of another buffer, `after`.
  void set_name(BufferId buffer, std::string_view before, BufferId other, std::string_view after) {
    if (buffer.valid()) plan_.buffer(buffer).name = plan_.text(before, plan_.buffer(other).name, after);
  }
  [[nodiscard]] plan::Name keep(std::string_view text) { return plan_.text(text); }

  /// Takes are not written down, nor is their giving back: of a program that has ended in the middle.
  void mute(bool muted) { muted_ = muted; }
  [[nodiscard]] bool muted() const { return muted_; }

  /// An operator keeps a tensor for backward.
  void note_saved() { ++saved_; }
  /// Tensors that were kept since this was last asked.
  std::int32_t count_saved() { return std::exchange(saved_, 0); }

  /// A point between two ops that figures are read at, maxima since the one before.
  void mark(std::string_view name);
  /// Ends the last phase.
  void finish() { flush(); }

 private:
  void flush();

  plan::Plan& plan_;
  std::vector<Mark>& marks_;
  Place place_;
  Place written_;             ///< of the op that is being written
  std::string_view op_name_;  ///< its name
  Part part_ = Part::creation;
  Category category_ = Category::workspace;
  std::uint8_t stream_ = 0;
  std::vector<std::uint8_t> streams_;
  bool muted_ = false;
  std::int32_t saved_ = 0;
  std::vector<BufferId> taken_;
  std::vector<BufferId> given_;
};

}  // namespace shard::like::eager
