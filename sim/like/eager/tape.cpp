// Steps from takes and give-backs.
#include "sim/like/eager/tape.h"

namespace shard::like::eager {

BufferId Tape::take(Bytes bytes) {
  if (muted_) return {};
  if (place_ != written_ || part_ != written_part_) {
    written_ = place_;
    begin();
  }
  return program_.take({.bytes = bytes, .category = category_, .memory = memory_, .stream = stream_});
}

void Tape::give_back(BufferId buffer) {
  if (!buffer.valid() || finished_) return;
  if (part_ != written_part_) begin();
  program_.give_back(buffer);
}

void Tape::begin() {
  written_part_ = part_;
  program_.begin({.module = written_.module, .name = written_.op, .block = written_.block, .part = part_});
}

}  // namespace shard::like::eager
