// FSDP1, FSDP2 and torchtitan's graph compilers as allocations of one rank.
#pragma once

#include <memory>

#include "sim/validate/memory_stream.h"
#include "sim/validate/model_run.h"
#include "sim/validate/run_description.h"

namespace shard::validate {

[[nodiscard]] std::unique_ptr<Rank> make_fsdp_rank(MemoryStream& memory, const RunDescription& run);

}  // namespace shard::validate
