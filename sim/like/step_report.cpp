// What people read of a step's time, and programs.
#include "sim/like/step_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "traces/base/numbers.h"

namespace shard::like {

std::string step_text(const LikeResult& r) {
  if (!r.step) return r.no_step.empty() ? "" : "step: no time, " + r.no_step + "\n";
  const step::StepTime& t = *r.step;
  std::string text =
      "step: " + duration_between(t.seconds, t.low, t.high) + ", " + show_number(t.tokens_per_second, 3) +
      " tokens/s per GPU (" + show_number(t.tokens_per_second_in(t.high), 3) + " to " +
      show_number(t.tokens_per_second_in(t.low), 3) + "), MFU " + show_fixed(100 * t.model_flops_share, 0) + " %\n";
  std::vector<step::StepPart> parts = t.parts;
  std::ranges::stable_sort(parts, std::ranges::greater{}, &step::StepPart::time);
  std::string shares;
  for (const step::StepPart& part : parts) {
    const double share = part.time.count() / t.seconds.count();
    if (share < 0.01) break;
    shares += (shares.empty() ? "  " : ", ") + part.name + ' ' + show_fixed(100 * share, 0) + " %";
  }
  return text + shares + '\n';
}

void add_step(nlohmann::json& j, const LikeResult& r) {
  j["step"] = nullptr;
  j["no_step"] = r.no_step.empty() ? nlohmann::json(nullptr) : nlohmann::json(r.no_step);
  if (!r.step) return;
  const step::StepTime& t = *r.step;
  nlohmann::json parts = nlohmann::json::array();
  for (const step::StepPart& part : t.parts) parts.push_back({{"name", part.name}, {"seconds", part.time.count()}});
  j["step"] = {{"seconds", t.seconds.count()},
               {"low", t.low.count()},
               {"high", t.high.count()},
               {"coverage", 1.0},
               {"tokens_per_second", t.tokens_per_second},
               {"tokens_per_second_low", t.tokens_per_second_in(t.high)},
               {"tokens_per_second_high", t.tokens_per_second_in(t.low)},
               {"model_flops_share", t.model_flops_share},
               {"parts", std::move(parts)}};
}

}  // namespace shard::like
