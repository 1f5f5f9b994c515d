// Tensors by holders over the caching allocator.
#include "sim/validate/memory_stream.h"

#include <cassert>

namespace shard::validate {

Held MemoryStream::take(std::int64_t bytes, Queue queue) {
  if (bytes <= 0 || out_of_memory_) return 0;
  const Result<BlockId> block = allocator_.allocate(Bytes{bytes}, static_cast<AllocatorStream>(queue));
  if (!block) {
    out_of_memory_ = true;
    return 0;
  }
  Held held = 0;
  if (unused_.empty()) {
    tensors_.emplace_back();
    held = static_cast<Held>(tensors_.size());
  } else {
    held = unused_.back();
    unused_.pop_back();
  }
  tensors_[held - 1] = {.block = *block, .bytes = bytes, .holders = 1};
  return held;
}

void MemoryStream::hold(Held held) {
  if (held != 0) ++tensors_[held - 1].holders;
}

void MemoryStream::drop(Held held) {
  if (held == 0) return;
  Tensor& tensor = tensors_[held - 1];
  assert(tensor.holders > 0);
  if (--tensor.holders > 0) return;
  const Result<void> freed = allocator_.free(tensor.block);
  assert(freed);
  (void)freed;
  unused_.push_back(held);
}

}  // namespace shard::validate
