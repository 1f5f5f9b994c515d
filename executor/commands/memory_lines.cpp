// Lines of memory at five moments.
#include "executor/commands/memory_lines.h"

#include <algorithm>

#include "sim/cli/sizes.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

std::string memory_text(const record::LiveMemory& live) {
  return "device " + cli::mib(record::live_in(live, Memory::device)) + ", host " +
         cli::mib(record::live_in(live, Memory::host) + record::live_in(live, Memory::pinned));
}

std::string memory_line(std::string moment, const record::LiveMemory& measured, const record::LiveMemory& predicted) {
  moment.resize(std::max<std::size_t>(moment.size(), 15), ' ');
  return "  " + moment + "  " + memory_text(measured) +
         (measured == predicted ? ", as predicted" : "; predicted " + memory_text(predicted)) + '\n';
}

}  // namespace

MemoryLines::MemoryLines(const Prepared& p, std::int64_t steps)
    : steps_(steps),
      planned_(record::planned_moments(p.plans.of_rank(0))),
      flops_(step_flops(p.planned, p.prediction, 0)) {}

std::string MemoryLines::created(const record::LiveMemory& measured) const {
  return memory_line("model made", record::without_optimizer(measured), record::without_optimizer(planned_.creation)) +
         memory_line("optimizer made", measured, planned_.creation);
}

std::string MemoryLines::step(std::int64_t step, const record::PhaseMoments& measured) const {
  const record::PhaseMoments& planned = step == 0 ? planned_.first_step : planned_.steady_step;
  const std::string number = ' ' + std::to_string(step + 1) + '/' + std::to_string(steps_);
  return memory_line("forward" + number, measured.forward, planned.forward) +
         memory_line("backward" + number, measured.backward, planned.backward) +
         memory_line("optimizer" + number, measured.end, planned.end);
}

std::string MemoryLines::speed(double seconds) const {
  const auto tflops = [&](Flops flops) { return show_number(flops.count() / seconds / 1e12, 3) + " TFLOPS"; };
  return tflops(flops_.model) + " per rank (" + tflops(flops_.by_parameters) + " as 8 x parameters x tokens)";
}

}  // namespace shard::commands
