// What one micro-step makes for itself, the next makes in the same buffers.
#pragma once

#include "sim/ir/plan.h"

namespace shard::plan {

/// Passes give staging, copies on their way between memories and the like a buffer for every op that needs one. Here
/// the instances of one micro-step take the places of those of the one before, by name, size and order, where these are
/// no longer in use: so micro-steps that are alike touch the same buffers, however many they are. Needs the steady step
/// in its final order, before its lifetimes are known.
void share_transients(Plan& plan);

}  // namespace shard::plan
