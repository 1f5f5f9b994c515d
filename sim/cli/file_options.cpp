// Every output against every input and every other output.
#include "sim/cli/file_options.h"

#include "sim/cli/contradiction.h"
#include "traces/base/file_place.h"

namespace shard::cli {

Result<void> check_files(std::span<const NamedFile> read, std::span<const NamedFile> written) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    for (const NamedFile& input : read)
      if (same_file(written[i].path, input.path))
        return contradiction(written[i].option + " is the file of " + input.option + ", which would be lost",
                             "another name for the output");
    for (std::size_t j = 0; j < i; ++j)
      if (same_file(written[i].path, written[j].path))
        return contradiction(
            written[i].option + " is the file of " + written[j].option + ", one of which would be lost",
            "another name for one of them");
  }
  for (const NamedFile& output : written) {
    Result<void> possible = can_write(output.path);
    if (possible) continue;
    Error error = possible.error();
    error.where = output.option;
    return error;
  }
  return {};
}

}  // namespace shard::cli
