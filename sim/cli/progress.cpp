// Draws progress.
#include "sim/cli/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ostream>

#include "sim/cli/chart.h"
#include "sim/cli/screen.h"
#include "sim/cli/sizes.h"

namespace shard::cli {
namespace {
constexpr double kQuiet = 1.0;  // nothing is shown for what takes less
constexpr double kTerminalInterval = 0.1;
constexpr double kLogInterval = 10.0;
}  // namespace

Clock steady_clock() {
  return [] {
    return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
  };
}

Progress::Progress(std::ostream& out, std::string what, Style style, Clock clock)
    : out_(out),
      what_(std::move(what)),
      style_(style),
      clock_(std::move(clock)),
      start_(clock_().count()),
      next_(start_ + (style.terminal ? kQuiet : kLogInterval)) {}

Progress::~Progress() {
  finish();
}

void Progress::update(double fraction, std::string_view note) {
  const double now = clock_().count();
  if (finished_ || now < next_) return;
  next_ = now + (style_.terminal ? kTerminalInterval : kLogInterval);
  draw(std::min(fraction, 1.0), note, now - start_);
}

void Progress::draw(double fraction, std::string_view note, double elapsed) {
  std::string text = what_;
  if (fraction >= 0) {
    if (style_.terminal) text += " " + bar(fraction, 24, style_);
    text += " " + std::to_string(static_cast<int>(std::floor(fraction * 100))) + " %";
    if (fraction > 0) text += ", " + duration(Seconds{elapsed * (1 - fraction) / fraction}) + " left";
  } else {
    text += ", " + duration(Seconds{elapsed});
  }
  if (!note.empty()) text.append(", ").append(note);
  if (style_.terminal) {
    out_ << Styled().add(Mark::line_begin).add(text).add(Mark::clear_line) << std::flush;
  } else {
    out_ << text << '\n' << std::flush;
  }
  drawn_ = true;
}

void Progress::finish() {
  if (!finished_ && drawn_ && style_.terminal)
    out_ << Styled().add(Mark::line_begin).add(Mark::clear_line) << std::flush;
  finished_ = true;
}

}  // namespace shard::cli
