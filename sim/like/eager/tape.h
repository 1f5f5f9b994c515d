// What a running program takes from its allocator and gives back, written down.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/like/program/program.h"

namespace shard::like::eager {

/// What runs, for names. Literals, or kept by the tape.
struct Place {
  std::string_view module{};      ///< "model.layers.0.mlp"
  std::string_view op = "start";  ///< "mm"
  std::int32_t block = -1;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Writes a program in the order in which it runs. An operator begins with what it takes first: one that only gives
/// back is counted to the one before.
class Tape {
 public:
  /// Borrows it.
  explicit Tape(like::Program& program) : program_(program) {}

  /// What follows is of this phase.
  void begin_phase(Phase phase) { program_.begin_phase(phase); }
  /// What follows is of this part of the step, and where nothing else is said, of this category.
  void set_part(Part part, Category category) {
    part_ = part;
    category_ = category;
  }
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
  /// What is taken from now on lies there; what was before. Pinned memory is given by PyTorch's CachingHostAllocator:
  /// blocks of a power of two, each kept for the next request of its size.
  Memory in_memory(Memory memory) { return std::exchange(memory_, memory); }
  void give_back(BufferId buffer);
  void set_category(BufferId buffer, Category category) {
    if (buffer.valid()) program_.allocation(buffer).category = category;
  }
  void set_name(BufferId buffer, std::string_view name) {
    if (buffer.valid()) program_.allocation(buffer).name = name;
  }
  /// `before`, the name of another buffer, `after`; where there is no other, as it was.
  void set_name(BufferId buffer, std::string_view before, BufferId other, std::string_view after) {
    if (buffer.valid() && other.valid())
      program_.allocation(buffer).name =
          program_.pool->text({before, program_.name_of(program_.allocation(other)), after});
  }
  [[nodiscard]] plan::Name keep(std::string_view text) { return program_.pool->text({text}); }

  /// Takes are not written down, nor is their giving back: of a program that has ended in the middle.
  void mute(bool muted) { muted_ = muted; }
  [[nodiscard]] bool muted() const { return muted_; }

  /// An operator keeps a tensor for backward.
  void note_saved() { ++saved_; }
  /// Tensors that were kept since this was last asked.
  std::int32_t count_saved() { return std::exchange(saved_, 0); }

  /// A point that figures are read at, maxima since the one before.
  void mark(std::string_view name) { program_.mark({.name = keep(name), .starts_again = true}); }
  void empty_cache() { program_.empty_cache(); }
  /// Ends the program: nothing more is written down, as the tensors of whoever wrote it go.
  void finish() { finished_ = true; }

 private:
  void begin();
  [[nodiscard]] BufferId take_pinned(Bytes bytes);

  like::Program& program_;
  Place place_;
  Place written_;  ///< of the operator that began last
  Part written_part_ = Part::unknown;
  Part part_ = Part::creation;
  Category category_ = Category::workspace;
  std::uint8_t stream_ = 0;
  Memory memory_ = Memory::device;
  std::map<Bytes, std::vector<BufferId>> idle_pinned_;  ///< by size
  bool muted_ = false;
  bool finished_ = false;
  std::int32_t saved_ = 0;
};

}  // namespace shard::like::eager
