// Progress of something that may take longer than a second: a bar on a terminal, a line per ten seconds elsewhere.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "sim/cli/output.h"
#include "traces/base/units.h"

namespace shard::cli {

/// Time since any fixed moment.
using Clock = std::function<Seconds()>;
[[nodiscard]] Clock steady_clock();

/// Writes to `out` (stderr; it must outlive this object), never to the result's stream. One rank makes one, the others
/// none. Not thread-safe.
class Progress {
 public:
  Progress(std::ostream& out, std::string what, Style style, Clock clock = steady_clock());
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// finish()
  ~Progress();

  /// `fraction` done, 0 to 1; negative when the end is not known. `note` is shown behind it ("step 12, loss 2.31").
  /// Cheap to call often: draws at most ten times a second, and nothing in the first second.
  void update(double fraction, std::string_view note = {});

  /// Takes the bar off the terminal. More calls do nothing.
  void finish();

 private:
  void draw(double fraction, std::string_view note, double elapsed);

  std::ostream& out_;
  std::string what_;
  Style style_;
  Clock clock_;
  double start_;
  double next_;  ///< moment of the next draw
  bool drawn_ = false;
  bool finished_ = false;
};

}  // namespace shard::cli
