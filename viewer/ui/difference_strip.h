// Below the memory of two documents: what differs between them op by op, and how late the other one is.
#pragma once

#include "viewer/index/memory.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// The memory shown of the first document and of another one; `other` is null where that has none of it.
struct ComparedMemory {
  const MemorySeries* first = nullptr;
  const MemorySeries* other = nullptr;
  std::size_t document = 1;
};

/// Bytes above, lateness below; without ops in common the bytes alone.
void draw_difference(const Session& session, const ViewState& state, Derived& derived, const Frame& frame,
                     const ComparedMemory& memory, const Rect& plot, const Rect& gutter);

}  // namespace shard::view
