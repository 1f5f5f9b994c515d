// Draws with the few shapes that every viewer of SVG has.
#include "sim/commands/sweep_picture.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "sim/commands/sweep_tables.h"
#include "traces/base/numbers.h"
#include "traces/base/printable.h"

namespace shard::commands {
namespace {

constexpr double kWidth = 1120, kHeight = 560;
constexpr double kLeft = 96, kTop = 48, kPlotWidth = 620, kPlotHeight = 440;
/// What stands beside the plot.
constexpr double kLegend = kLeft + kPlotWidth + 36;
/// An axis has at most two more, and at least a third.
constexpr double kTicks = 8;
constexpr std::size_t kMostExplained = 14;
constexpr std::size_t kLongestExplanation = 56;

/// Colours that stay apart for most colour-blind readers too (Okabe and Ito).
constexpr const char* kFits = "#0072b2";
constexpr const char* kDoesNotFit = "#999999";
constexpr const char* kFront = "#d55e00";
constexpr const char* kCapacity = "#c00000";

std::string number(double value) {
  return show_fixed(value, 1);
}

/// The largest of GiB, MiB and bytes that `bytes` has one of.
double unit_of(double bytes) {
  constexpr double kMebi = 1024.0 * 1024;
  return bytes >= 1024 * kMebi ? 1024 * kMebi : bytes >= kMebi ? kMebi : 1;
}

/// From 0 to a round number above `most`, in steps of 1, 2 or 5 times a power of ten of `unit`.
struct Axis {
  double step = 1;
  double end = 1;

  Axis(double most, double unit) {
    const double rough = std::max(most, unit * 1e-9) / unit / kTicks;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double round : {1.0, 2.0, 5.0, 10.0})
      if (round * power >= rough) {
        step = round * power * unit;
        break;
      }
    end = std::max(1.0, std::ceil(most / step * 1.02)) * step;
  }
};

class SweepPicture {
 public:
  SweepPicture(const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows)
      : lists_(lists), x_(most_bytes(rows), unit_of(most_bytes(rows))), y_(most_tokens(rows), 1) {
    for (const SweepRow& row : rows) {
      if (!row.figures || !row.figures->times) continue;
      shown_.push_back(&row);
      if (row.on_front) front_.push_back(&row);
      if (row.figures->taken.device_capacity) limits_.insert(limit_of(*row.figures));
    }
    std::ranges::stable_sort(front_, {}, [](const SweepRow* row) { return row->figures->device_peak; });
  }

  [[nodiscard]] std::string draw(const std::string& title) {
    svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) + "\" height=\"" + number(kHeight) +
           "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    text(kLeft, 24, title, "start", " font-size=\"15\"");
    axes();
    for (const std::int64_t limit : limits_) line_of(limit);
    front_line();
    for (const SweepRow* row : shown_) point(*row);
    numbers();
    legend();
    return svg_ + "</svg>\n";
  }

 private:
  /// Of a peak: what is left with the least of what lies outside of the allocator.
  static std::int64_t limit_of(const SweepFigures& f) { return (*f.taken.device_capacity - f.outside.low).count(); }
  /// A capacity far to the right would press the points together, and so is not drawn; peaks far beyond a capacity
  /// would press those together that fit, and so stand at the edge.
  static double most_bytes(const std::vector<SweepRow>& rows) {
    double most = 0;
    double capacity = 0;
    for (const SweepRow& row : rows) {
      if (!row.figures || !row.figures->times) continue;
      most = std::max(most, static_cast<double>(row.figures->device_peak.count()));
      if (row.figures->taken.device_capacity)
        capacity = std::max(capacity, static_cast<double>(limit_of(*row.figures)));
    }
    if (capacity > 0 && most > 2 * capacity) return 2 * capacity;
    return capacity <= 4 * most ? std::max(most, capacity) : most;
  }
  static double most_tokens(const std::vector<SweepRow>& rows) {
    double most = 0;
    for (const SweepRow& row : rows)
      if (row.figures && row.figures->times) most = std::max(most, row.figures->times->tokens_per_second);
    return most;
  }

  [[nodiscard]] double x_of(double bytes) const { return kLeft + kPlotWidth * bytes / x_.end; }
  [[nodiscard]] double y_of(double tokens) const { return kTop + kPlotHeight * (1 - tokens / y_.end); }
  [[nodiscard]] double x_of(const SweepRow& row) const {
    return x_of(std::min(static_cast<double>(row.figures->device_peak.count()), x_.end));
  }
  [[nodiscard]] double y_of(const SweepRow& row) const { return y_of(row.figures->times->tokens_per_second); }

  void text(double x, double y, const std::string& what, const char* anchor = "start", const char* more = "") {
    svg_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\"" + more + ">" +
            markup_text(what) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const std::string& stroke) {
    svg_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
            "\" stroke=" + stroke + "/>\n";
  }

  void axes() {
    const double bottom = kTop + kPlotHeight;
    for (double bytes = 0; bytes <= x_.end * 1.0001; bytes += x_.step) {
      line(x_of(bytes), kTop, x_of(bytes), bottom, "\"#00000022\"");
      text(x_of(bytes), bottom + 18, show_bytes(Bytes{static_cast<std::int64_t>(bytes)}), "middle");
    }
    for (double tokens = 0; tokens <= y_.end * 1.0001; tokens += y_.step) {
      line(kLeft, y_of(tokens), kLeft + kPlotWidth, y_of(tokens), "\"#00000022\"");
      text(kLeft - 8, y_of(tokens) + 4, show_number(tokens), "end");
    }
    line(kLeft, bottom, kLeft + kPlotWidth, bottom, "\"black\"");
    line(kLeft, kTop, kLeft, bottom, "\"black\"");
    const bool beyond = std::ranges::any_of(
        shown_, [&](const SweepRow* row) { return static_cast<double>(row->figures->device_peak.count()) > x_.end; });
    text(
        kLeft + kPlotWidth / 2, bottom + 40,
        std::string("peak of device memory, largest rank") + (beyond ? "; at the right edge: more than fits here" : ""),
        "middle");
    text(kLeft, kTop - 8, "tokens/s");
  }

  void line_of(std::int64_t capacity) {
    const double x = x_of(static_cast<double>(capacity));
    if (x > kLeft + kPlotWidth) return;
    line(x, kTop, x, kTop + kPlotHeight, std::string("\"") + kCapacity + "\" stroke-dasharray=\"6 3\"");
    const bool right = x > kLeft + kPlotWidth - 90;
    text(right ? x - 4 : x + 4, kTop + 12, show_bytes(Bytes{capacity}), right ? "end" : "start", " fill=\"#c00000\"");
  }

  /// Between two neighbours no strategy is faster than the smaller one.
  void front_line() {
    if (front_.empty()) return;
    std::string path = "M" + number(x_of(*front_.front())) + " " + number(y_of(*front_.front()));
    for (const SweepRow* row : front_) path += "H" + number(x_of(*row)) + "V" + number(y_of(*row));
    double end = kLeft + kPlotWidth;
    if (!limits_.empty()) end = std::min(end, x_of(static_cast<double>(*limits_.rbegin())));
    path += "H" + number(end);
    svg_ += "<path class=\"front\" d=\"" + path + "\" fill=\"none\" stroke=\"" + kFront + "\" stroke-width=\"1.5\"/>\n";
  }

  void point(const SweepRow& row) {
    const char* const colour = row.on_front ? kFront : row.fits() ? kFits : kDoesNotFit;
    const SweepFigures& f = *row.figures;
    std::string label = options_of(lists_, row);
    label += (label.empty() ? "" : ": ") + show_bytes(f.device_peak) + ", " + show_number(f.times->tokens_per_second) +
             " tokens/s";
    if (const std::string reason = row.reason(); !reason.empty()) label += "; " + reason;
    svg_ += "<circle class=\"" + std::string(row.on_front ? "on_front" : row.status()) + "\" cx=\"" +
            number(x_of(row)) + "\" cy=\"" + number(y_of(row)) + "\" r=\"" + (row.on_front ? "5" : "4") + "\" fill=\"" +
            (row.fits() ? colour : "none") + "\" fill-opacity=\"0.8\" stroke=\"" + colour + "\"><title>" +
            markup_text(label) + "</title></circle>\n";
  }

  void numbers() {
    const SweepRow* last = nullptr;
    for (std::size_t i = 0; i < front_.size(); ++i) {
      const double x = x_of(*front_[i]);
      const double y = y_of(*front_[i]);
      // It would stand on the one before.
      if (last != nullptr && x - x_of(*last) < 12 && y_of(*last) - y < 12) continue;
      last = front_[i];
      text(x, y - 9, std::to_string(i + 1), "middle", " fill=\"#d55e00\" font-weight=\"bold\"");
    }
  }

  void legend() {
    double y = kTop;
    const auto entry = [&](const char* fill, const char* stroke, const std::string& what) {
      svg_ += "<circle cx=\"" + number(kLegend + 5) + "\" cy=\"" + number(y - 4) + "\" r=\"4.5\" fill=\"" + fill +
              "\" stroke=\"" + stroke + "\"/>\n";
      text(kLegend + 18, y, what);
      y += 18;
    };
    const auto fitting = std::ranges::count_if(shown_, [](const SweepRow* row) { return row->fits(); });
    const auto front = static_cast<std::ptrdiff_t>(front_.size());
    entry(kFront, kFront, std::to_string(front) + " that no other one beats");
    entry(kFits, kFits, std::to_string(fitting - front) + " others that fit");
    entry("none", kDoesNotFit,
          std::to_string(static_cast<std::ptrdiff_t>(shown_.size()) - fitting) + " that do not fit");
    y += 10;
    for (std::size_t i = 0; i < front_.size() && i < kMostExplained; ++i, y += 30) {
      const SweepFigures& f = *front_[i]->figures;
      std::string options = options_of(lists_, *front_[i]);
      if (options.size() > kLongestExplanation) options = options.substr(0, kLongestExplanation - 3) + "...";
      text(kLegend, y, std::to_string(i + 1) + "  " + options);
      text(kLegend + 18, y + 13,
           show_bytes(f.device_peak) + ", " + show_number(f.times->tokens_per_second) + " tokens/s", "start",
           " fill=\"#555555\" font-size=\"11\"");
    }
    if (front_.size() > kMostExplained)
      text(kLegend, y, "and " + std::to_string(front_.size() - kMostExplained) + " more");
  }

  const std::vector<SweptOption>& lists_;
  Axis x_;
  Axis y_;
  std::vector<const SweepRow*> shown_;
  std::vector<const SweepRow*> front_;  ///< by memory
  std::set<std::int64_t> limits_;
  std::string svg_;
};

}  // namespace

std::string sweep_svg(const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows,
                      const std::string& title) {
  return SweepPicture(lists, rows).draw(title);
}

}  // namespace shard::commands
