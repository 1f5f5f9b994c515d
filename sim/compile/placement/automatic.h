// Placement auto: what of the model data the device has room for.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "sim/compile/draft.h"

namespace shard::plan {

/// What placement decides about: parameters, gathered ones too, gradients and optimizer state.
/// Placement::non_model_peak is of everything else.
[[nodiscard]] bool is_model_data(Category category);

/// The passes from place on until the one that is named, for a draft whose Plan::placed is a try.
using RestOfPasses = std::function<Draft(Draft, std::string_view until)>;

/// `ranks`: drafts behind pass `optimize`, everything resting on the device: rank 0's, and where ranks hold unlike data
/// (units with owners, optimizer state by parameter) one of each kind. The answer is for all ranks, and fits each.
///
/// From a plan in which all model data rests on the host comes how much of the device is free at each moment of the
/// step; with Placement::non_model_peak, that in place of what the plan has beside model data. Room goes, in this
/// order, to
///   1. parameters that rest on the device: nearest next use across the end of the step first, each that fits at every
///      moment, so that the step ends as it begins;
///   2. units that stay on the device between two uses within the step: Belady's rule;
///   3. optimizer state, in parameter order, with `margin_ratio` of what is left; gradients rest where it does. What is
///      left is what lies between the arena and the capacity; with Placement::non_model_peak what is free at all times.
/// A kind whose share the user gave is left as given. What the arena cannot use is given up until the plan is within
/// the capacity; if it is not even with everything on the host, that is the answer.
[[nodiscard]] Placed place_automatically(std::span<const Draft> ranks, const RestOfPasses& rest);

}  // namespace shard::plan
