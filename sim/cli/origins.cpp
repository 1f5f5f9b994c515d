// Origins behind what an error mentions.
#include "sim/cli/origins.h"

namespace shard::cli {

Error with_origins(const Command& command, Error error) {
  // From the back: what is put in moves what stands behind it.
  for (auto mention = error.mentions.rbegin(); mention != error.mentions.rend(); ++mention) {
    if (!command.has(mention->option)) continue;
    if (mention->end == Mention::kWhere)
      error.where = command.describe(mention->option);
    else
      error.what.insert(mention->end, " (" + command.origin(mention->option).where + ")");
  }
  error.mentions.clear();
  return error;
}

}  // namespace shard::cli
