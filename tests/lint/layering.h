// Who may include whom, and which libraries' headers belong where: the table, and the check of one file against it.
#pragma once

#include <string>
#include <vector>

#include "tests/lint/source_tree.h"

namespace shard::lint {

/// "sim/ir/op.h:12: may not include executor/comm/communicator.h (...)", one per fault. A file in a folder that the
/// table does not know is a fault too.
[[nodiscard]] std::vector<std::string> layering_faults(const SourceFile& file);

}  // namespace shard::lint
