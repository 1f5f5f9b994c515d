// Two times and what is between them.
#include "viewer/commands/time_option.h"

#include <string>

#include "sim/cli/times.h"

namespace shard::view {

Result<TimeRange> parse_range(std::string_view text, std::string_view where) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return Error{Errc::usage, "'" + std::string(text) + "' is no range of time", std::string(where),
                 "two times with a colon between, such as 10ms:12.5ms"};
  const Result<std::int64_t> begin = cli::parse_time(text.substr(0, colon), where);
  if (!begin) return begin.error();
  const Result<std::int64_t> end = cli::parse_time(text.substr(colon + 1), where);
  if (!end) return end.error();
  if (*end <= *begin)
    return Error{Errc::usage, "the range '" + std::string(text) + "' is empty", std::string(where),
                 "the earlier time first"};
  return TimeRange{*begin, *end};
}

}  // namespace shard::view
