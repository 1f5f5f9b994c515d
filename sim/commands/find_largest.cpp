// Doubling, then halving.
#include "sim/commands/find_largest.h"

#include <utility>

namespace shard::commands {
namespace {

/// More than any number asked for; doubling ends here where nothing else ends it.
constexpr std::int64_t kMost = std::int64_t{1} << 30;

}  // namespace

Result<Largest> find_largest(std::int64_t step, const std::function<Result<bool>(std::int64_t)>& fits) {
  Largest found;
  const auto ask = [&](std::int64_t steps) -> Result<bool> {
    Result<bool> answer = fits(steps * step);
    const bool too_large = answer ? !*answer : answer.error().code == Errc::does_not_fit;
    if (too_large) found.contradiction.reset();
    if (too_large) return false;
    if (answer) return answer;
    if (steps == 1 || answer.error().code != Errc::contradiction) return answer;
    found.contradiction = answer.error();
    return false;
  };
  std::int64_t low = 0;
  std::int64_t high = 1;
  while (high * step < kMost) {
    const Result<bool> answer = ask(high);
    if (!answer) return answer.error();
    if (!*answer) break;
    low = std::exchange(high, 2 * high);
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const Result<bool> answer = ask(middle);
    if (!answer) return answer.error();
    (*answer ? low : high) = middle;
  }
  found.value = low * step;
  return found;
}

}  // namespace shard::commands
