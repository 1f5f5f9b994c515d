// Steps from takes and give-backs.
#include "sim/like/eager/tape.h"

#include <algorithm>

namespace shard::like::eager {

BufferId Tape::take(Bytes bytes) {
  if (muted_) return {};
  if (place_ != written_ || part_ != written_part_) {
    written_ = place_;
    begin();
  }
  if (memory_ == Memory::pinned) {
    const auto idle = std::find_if(idle_pinned_.begin(), idle_pinned_.end(),
                                   [&](BufferId b) { return program_.allocation(b).bytes == bytes; });
    if (idle != idle_pinned_.end()) {
      const BufferId buffer = *idle;
      idle_pinned_.erase(idle);
      return buffer;
    }
  }
  return program_.take({.bytes = bytes, .category = category_, .memory = memory_, .stream = stream_});
}

void Tape::give_back(BufferId buffer) {
  if (!buffer.valid() || finished_) return;
  if (program_.allocation(buffer).memory == Memory::pinned) return idle_pinned_.push_back(buffer);
  if (part_ != written_part_) begin();
  program_.give_back(buffer);
}

void Tape::begin() {
  written_part_ = part_;
  program_.begin({.module = written_.module, .name = written_.op, .block = written_.block, .part = part_});
}

}  // namespace shard::like::eager
