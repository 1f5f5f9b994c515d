// Rounds of trainings within a time.
#include "executor/commands/calibration_rounds.h"

#include <algorithm>

namespace shard::commands {
namespace {

std::string described(const CalibrationCase& c, int round) {
  return "round " + std::to_string(round) + ", " + c.model + ", " + std::to_string(c.ranks) +
         (c.ranks == 1 ? " rank" : " ranks") + (c.threads == 1 ? "" : ", " + std::to_string(c.threads) + " threads");
}

Error no_time() {
  return {.code = Errc::retryable,
          .what = "no training of the calibration ended in its time",
          .where = "--seconds",
          .help = "a larger --seconds"};
}

}  // namespace

Result<Rounds> run_rounds(std::span<CaseRecord> records, const CalibrationTime& time, const RunOneCase& run,
                          const SayRounds& say) {
  Rounds rounds;
  const double whole = time.end - time.begin;
  const auto share = [&] { return whole > 0 ? std::clamp((time.now() - time.begin) / whole, 0.0, 0.99) : 0.99; };
  const double first = time.now();
  std::size_t done = 0;
  while (rounds.whole < time.most_rounds) {
    const double round_begin = time.now();
    if (rounds.whole > 0 && round_begin + (round_begin - first) / rounds.whole > time.end) break;
    const std::size_t before = done;
    for (CaseRecord& record : records) {
      const double left = time.end - time.now();
      if (done > 0 && (time.now() - first) / static_cast<double>(done) > left) break;
      say(share(), described(record.of, rounds.whole + 1));
      const Result<bool> kept = run(record, left);
      if (!kept) return kept.error();
      if (!*kept) break;
      ++done;
    }
    if (rounds.whole == 0) rounds.left_out = records.size() - done;
    if (done - before < records.size()) break;
    ++rounds.whole;
  }
  if (done == 0) return no_time();
  return rounds;
}

}  // namespace shard::commands
