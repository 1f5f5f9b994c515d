// Work that takes as long as a disk does, on all ranks at once, none of which takes another for dead meanwhile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "traces/base/result.h"

namespace shard::train {

/// Does `work`, on a thread beside, while the ranks go on telling each other that they are alive. The outcome is that
/// of all ranks: what each says, or the first error. All ranks call it.
[[nodiscard]] Result<std::vector<std::string>> together(Communicator& communicator,
                                                        const std::function<Result<std::string>()>& work);

}  // namespace shard::train
