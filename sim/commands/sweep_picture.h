// A sweep as a picture: device memory against speed.
#pragma once

#include <string>
#include <vector>

#include "sim/commands/sweep_rows.h"

namespace shard::commands {

/// SVG: a point for every strategy whose time is predicted, at its peak and its tokens a second; those that do not fit
/// hollow, the front as a stepped line with numbers, which are explained beside the plot, the devices' capacities as
/// dashed lines. A point says its options where the mouse rests on it. Text from files cannot be markup.
[[nodiscard]] std::string sweep_svg(const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows,
                                    const std::string& title);

}  // namespace shard::commands
