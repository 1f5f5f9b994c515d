// Two spellings of one path.
#include "sim/cli/output_path.h"

namespace shard::cli {

Result<std::string> OutputPath::chosen() const {
  if (!last_word.empty() && !option.empty())
    return Error{Errc::usage, "two files to write: '" + last_word + "' and '" + option + "'", "--output",
                 "one input, and either -o FILE or the file behind it"};
  if (last_word.empty() && option.empty())
    return Error{Errc::usage, "OUTPUT is missing: the file to write", "", "-o FILE"};
  return option.empty() ? last_word : option;
}

void add_output_path(Command& command, Group& group, OutputPath& path, const std::string& called) {
  command.add_positional(called, &path.last_word, "the file to write (or -o FILE)").writes_file();
  group.add("output", &path.option, "FILE", "the file to write, in place of " + called).letter('o').writes_file();
}

}  // namespace shard::cli
