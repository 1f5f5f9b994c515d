// Steps from takes and give-backs.
#include "sim/like/eager/tape.h"

#include <bit>

namespace shard::like::eager {

BufferId Tape::take(Bytes bytes) {
  if (muted_) return {};
  if (place_ != written_ || part_ != written_part_) {
    written_ = place_;
    begin();
  }
  if (memory_ == Memory::pinned) return take_pinned(bytes);
  return program_.take({.bytes = bytes, .category = category_, .memory = memory_, .stream = stream_});
}

BufferId Tape::take_pinned(Bytes bytes) {
  if (bytes.count() == 0) return {};
  const Bytes block{static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes.count())))};
  std::vector<BufferId>& idle = idle_pinned_[block];
  if (idle.empty()) return program_.take({.bytes = block, .category = category_, .memory = Memory::pinned});
  const BufferId buffer = idle.back();
  idle.pop_back();
  return buffer;
}

void Tape::give_back(BufferId buffer) {
  if (!buffer.valid() || finished_) return;
  if (program_.allocation(buffer).memory == Memory::pinned) {
    idle_pinned_[program_.allocation(buffer).bytes].push_back(buffer);
    return;
  }
  if (part_ != written_part_) begin();
  program_.give_back(buffer);
}

void Tape::begin() {
  written_part_ = part_;
  program_.begin({.module = written_.module, .name = written_.op, .block = written_.block, .part = part_});
}

}  // namespace shard::like::eager
