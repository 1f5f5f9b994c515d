// What blocks of a PyTorch program are for, where the frames that asked for them and their lives make that plain.
#pragma once

#include <cstddef>

#include "traces/reader.h"

namespace shard::import {

/// Sets the category of the trace's memory events of Category::not_known, both ends of a block alike:
/// - parameter: allocated where a module moves or converts itself (`_apply`), or under torch.nn's own constructors;
/// - gathered: full parameters that FSDP gathers;
/// - activation: allocated in the forward of a module (the recomputed one too), or by other Python code and given back
///   by a backward: only what autograd saved is. Not what outlives more than two backwards: caches, workspaces;
/// - gradient: allocated in a backward that it outlives, or by the accumulation into `.grad`;
/// - optimizer_state: allocated in a step of PyTorch's own optimizers that it outlives.
/// - parameter: what an own optimizer's step gives back by `parameter.data = updated`, and the latest of that size that
///   it made; optimizer_state: what such a step made besides of the same sizes, and keeps.
/// - workspace: what PyTorch gives cuBLAS; what is made and given back within one backward or step.
/// What is then left and stays is told by its size and number where these agree with the rest (pytorch_kept.h).
/// A snapshot whose stacks say categories (kCategoryFile) has these and no others.
/// The innermost of such frames counts. The rest stays not known: what else has no frames,
/// and the steps of optimizers that were not seen to replace parameters, which may make these as well as state.
///
/// `recorded_from`: the first event that was recorded; those before it are of blocks that were there already. Where
/// frames of Python alone were recorded, what has none was done by autograd's threads.
void recognise_categories(Trace& trace, std::size_t recorded_from);

}  // namespace shard::import
