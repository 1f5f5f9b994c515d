// What blocks that a PyTorch program keeps are for, by what the rest of the recording says of blocks of their size.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/import/pytorch_deeds.h"
#include "traces/reader.h"

namespace shard::import {

/// Sets categories of blocks that frames and passes left not known; `of` is what each stack does:
/// - workspace: there before the recording, without frames, never given back, and as large as what PyTorch gives
///   cuBLAS. More than two of a size, or a gradient of it, are of something else.
/// - parameter and optimizer_state: there before and never given back, where PyTorch's Adam steps and of each large
///   gradient's size there are three; of three one is the parameter.
/// - parameter: as many blocks of a size as Adam makes pairs of state of it, which were there when it did.
/// - parameter: there before and never given back, where only forwards were recorded, which keep at least as many
///   blocks for a backward, and the counts by size are not those of parameters with something of their size beside.
/// - input: copied to the device outside modules, backwards and steps, where no gradient belongs to it.
void tell_kept(Trace& trace, const std::vector<Deed>& of, std::size_t recorded_from);

}  // namespace shard::import
