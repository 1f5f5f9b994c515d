// Ops from takes and give-backs.
#include "sim/like/eager/tape.h"

#include <string>

namespace shard::like::eager {

void Tape::begin_phase(Phase phase) {
  flush();
  plan_.phases.push_back({.phase = phase, .ops = {}});
}

void Tape::set_part(Part part, Category category) {
  flush();
  part_ = part;
  category_ = category;
}

BufferId Tape::take(Bytes bytes) {
  if (muted_) return {};
  if (!given_.empty() || place_ != written_) {
    flush();
    if (place_ != written_ || op_name_.empty())
      op_name_ = place_.module.empty() ? plan_.text(place_.op) : plan_.text(place_.module, " ", place_.op);
    written_ = place_;
  }
  const BufferId buffer = plan_.add_buffer({.name = op_name_, .category = category_, .bytes = bytes});
  taken_.push_back(buffer);
  streams_.resize(plan_.buffers.size(), 0);
  streams_.back() = stream_;
  return buffer;
}

void Tape::give_back(BufferId buffer) {
  if (buffer.valid()) given_.push_back(buffer);
}

void Tape::mark(std::string_view name) {
  flush();
  marks_.push_back({std::string(name), plan_.phases.back().phase, plan_.phases.back().ops.size(), true});
}

void Tape::flush() {
  if (taken_.empty() && given_.empty()) return;
  plan_.phases.back().ops.push_back({.name = op_name_,
                                     .part = part_,
                                     .block = written_.block,
                                     .action = plan::Copy{},
                                     .acquire = plan_.list(taken_),
                                     .release = plan_.list(given_)});
  taken_.clear();
  given_.clear();
}

}  // namespace shard::like::eager
