// Several events made at once.
#pragma once

#include <initializer_list>

#include "executor/cuda/api/api.h"

namespace shard::cuda {

/// Each becomes a new event of the device. Errors: as Api::make_event.
[[nodiscard]] inline Result<void> make_events(Api& api, std::initializer_list<Event*> events) {
  for (Event* const event : events) {
    const Result<Event> made = api.make_event();
    if (!made) return made.error();
    *event = *made;
  }
  return {};
}

}  // namespace shard::cuda
