// Times as the kernel counts them, in ticks, by core.
#include "executor/commands/busy_machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
  return set;
}

double seconds_of(int who) {
  rusage usage{};
  if (getrusage(who, &usage) != 0) return 0;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// proc(5), /proc/stat: "cpuN user nice system idle iowait irq softirq steal ...".
double busy_seconds_of_cores() {
  const cpu_set_t mine = allowed();
  std::ifstream file("/proc/stat");
  double ticks = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ') continue;
    std::istringstream words(line.substr(3));
    int core = -1;
    words >> core;
    if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(static_cast<std::size_t>(core), &mine)) continue;
    constexpr int kIdle = 3, kWaits = 4, kSteal = 7;
    double each = 0;
    for (int i = 0; i <= kSteal && words >> each; ++i)
      if (i != kIdle && i != kWaits) ticks += each;
  }
  return ticks / static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
}

}  // namespace

int cores_here() {
  const cpu_set_t set = allowed();
  return std::max(1, CPU_COUNT(&set));
}

bool is_busy(double cores) {
  constexpr double kShare = 0.2;  // a fifth slower is more than the laws are off by
  return cores > kShare * cores_here();
}

std::string busy_text(double cores) {
  return "other programs kept " + show_fixed(cores, 1) + " of this machine's " + std::to_string(cores_here()) +
         " cores busy meanwhile: ";
}

ProcessorTime::ProcessorTime()
    : begin_(std::chrono::steady_clock::now()),
      own_(seconds_of(RUSAGE_SELF)),
      children_(seconds_of(RUSAGE_CHILDREN)),
      cores_(busy_seconds_of_cores()) {}

double ProcessorTime::passed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

double ProcessorTime::of_this_process() const {
  return seconds_of(RUSAGE_SELF) - own_;
}

double ProcessorTime::of_ended_children() const {
  return seconds_of(RUSAGE_CHILDREN) - children_;
}

double ProcessorTime::of_cores_here() const {
  return busy_seconds_of_cores() - cores_;
}

double ProcessorTime::cores_of_others(double own_seconds) const {
  const double seconds = passed();
  const double all = of_cores_here();
  if (seconds <= 0 || all <= 0) return 0;
  return std::max(0.0, all - own_seconds) / seconds;
}

}  // namespace shard::commands
