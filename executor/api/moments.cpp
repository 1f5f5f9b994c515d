// Moments as the public interface tells them.
#include "executor/api/impl.h"

namespace shardscope {

using shard::Memory;
using shard::record::live_in;

Live live_of(const shard::record::LiveMemory& live) {
  return {.device = live_in(live, Memory::device),
          .host = live_in(live, Memory::host) + live_in(live, Memory::pinned),
          .disk = live_in(live, Memory::disk)};
}

Created created_of(const shard::record::LiveMemory& live) {
  return {.model = live_of(shard::record::without_optimizer(live)), .optimizer = live_of(live)};
}

InStep in_step_of(const shard::record::PhaseMoments& moments) {
  return {.forward = live_of(moments.forward), .backward = live_of(moments.backward), .step = live_of(moments.end)};
}

}  // namespace shardscope
