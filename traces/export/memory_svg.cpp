// Every column of pixels is one sample of the curve; equal neighbours share a point.
#include "traces/export/memory_svg.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/numbers.h"
#include "traces/base/output_file.h"
#include "traces/base/printable.h"
#include "traces/base/text_table.h"
#include "traces/export/timeline.h"

namespace shard {
namespace {

/// Colours that stay apart for most colour-blind readers too (Okabe and Ito, and two greys), by category.
constexpr std::array<const char*, kCategoryCount> kColours = {"#0072b2", "#56b4e9", "#d55e00", "#004c78", "#009e73",
                                                              "#e69f00", "#999999", "#cc79a7", "#f0e442", "#666666"};
constexpr int kLeft = 90, kRight = 20, kTop = 44, kGap = 46;

struct Column {
  std::int64_t live = 0;
  BytesByCategory by_category{};
};

/// What is drawn of one curve.
struct Panel {
  std::vector<Column> columns;
  std::int64_t peak_bytes = 0, peak_time_ns = 0;
};

Panel columns_of(const MemoryCurve& curve, std::int64_t begin, std::int64_t end, int width) {
  Panel panel;
  panel.columns.resize(static_cast<std::size_t>(width));
  const double scale =
      static_cast<double>(width) / std::max(1.0, static_cast<double>(end) - static_cast<double>(begin));
  const auto column_of = [&](std::int64_t time) {
    const double x = (static_cast<double>(time) - static_cast<double>(begin)) * scale;
    return static_cast<std::size_t>(std::clamp(x, 0.0, static_cast<double>(width - 1)));
  };
  Column now;
  std::size_t at = 0;
  for (const MemorySample& sample : curve.samples) {
    const std::size_t to = column_of(sample.time_ns);
    // What was live holds until the next sample, in every column between.
    while (at < to) panel.columns[++at] = now;
    now.live = sample.live_bytes;
    now.by_category[static_cast<std::size_t>(sample.category)] = sample.category_bytes;
    if (now.live >= panel.columns[at].live) panel.columns[at] = now;
    if (now.live > panel.peak_bytes) {
      panel.peak_bytes = now.live;
      panel.peak_time_ns = sample.time_ns;
    }
  }
  while (at + 1 < panel.columns.size()) panel.columns[++at] = now;
  return panel;
}

std::string number(double value) {
  return show_fixed(value, 1);
}

class SvgExporter {
 public:
  SvgExporter(const Trace& trace, OutputFile& out, const MemorySvgOptions& options)
      : trace_(trace), out_(out), options_(options), plot_width_(options.width - kLeft - kRight) {}

  void run(const std::vector<MemoryCurve>& curves) {
    const std::size_t shown = std::min(curves.size(), static_cast<std::size_t>(options_.max_panels));
    begin_ = curves.front().samples.front().time_ns;
    end_ = begin_;
    for (const MemoryCurve& curve : curves) {
      begin_ = std::min(begin_, curve.samples.front().time_ns);
      end_ = std::max(end_, curve.samples.back().time_ns);
    }
    const int height = kTop + static_cast<int>(shown) * (options_.panel_height + kGap);
    out_.write("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(options_.width) + "\" height=\"" +
               std::to_string(height) + "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
               "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    legend(curves);
    for (std::size_t i = 0; i < shown; ++i) {
      panel(curves[i], kTop + static_cast<int>(i) * (options_.panel_height + kGap));
    }
    if (shown < curves.size()) {
      text(kLeft, height - 6, std::to_string(curves.size() - shown) + " further ranks and memories are not shown");
    }
    out_.write("</svg>\n");
  }

 private:
  void text(double x, double y, const std::string& what, const char* anchor = "start") {
    out_.write("<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
               markup_text(what) + "</text>\n");
  }

  void legend(const std::vector<MemoryCurve>& curves) {
    std::array<bool, kCategoryCount> occurs{};
    for (const MemoryCurve& curve : curves) {
      for (const Category category : curve.categories) occurs[static_cast<std::size_t>(category)] = true;
    }
    double x = kLeft;
    for (int c = 0; c < kCategoryCount; ++c) {
      if (!occurs[static_cast<std::size_t>(c)]) continue;
      const std::string name = to_string(static_cast<Category>(c));
      out_.write("<rect x=\"" + number(x) + "\" y=\"10\" width=\"12\" height=\"12\" fill=\"" +
                 kColours[static_cast<std::size_t>(c)] + "\"/>\n");
      text(x + 16, 20, name);
      x += 32 + 7.0 * static_cast<double>(name.size());
    }
  }

  [[nodiscard]] std::int64_t capacity(const MemoryCurve& curve) const {
    std::int64_t most = 0;
    for (const ArenaSummary& arena : trace_.arenas) {
      if (arena.rank == curve.rank && arena.memory == curve.memory) most = std::max(most, arena.capacity_bytes);
    }
    return most;
  }

  void panel(const MemoryCurve& curve, int top) {
    const Panel panel = columns_of(curve, begin_, end_, plot_width_);
    const std::int64_t limit = capacity(curve);
    // A capacity far above the curve would press it flat: then only its size is told.
    const bool line = limit > 0 && limit <= 4 * std::max<std::int64_t>(panel.peak_bytes, 1);
    const double most = static_cast<double>(std::max({panel.peak_bytes, line ? limit : 0, std::int64_t{1}})) * 1.05;
    const double height = options_.panel_height;
    const auto y_of = [&](double bytes) { return top + height - height * std::clamp(bytes / most, 0.0, 1.0); };

    std::string title =
        "rank " + std::to_string(curve.rank.value) + ", " + to_string(curve.memory) + " memory: peak " +
        show_bytes(Bytes{panel.peak_bytes}) + " at " +
        duration(Seconds{(static_cast<double>(panel.peak_time_ns) - static_cast<double>(begin_)) / 1e9}, 4);
    if (limit > 0) title += ", capacity " + show_bytes(Bytes{limit});
    text(kLeft, top - 6, title);
    std::vector<double> base(panel.columns.size(), 0.0);
    for (const Category category : curve.categories) layer(panel, category, base, y_of);
    axis(top, height, most, y_of);
    if (line) {
      out_.write("<line x1=\"" + std::to_string(kLeft) + "\" x2=\"" + std::to_string(kLeft + plot_width_) + "\" y1=\"" +
                 number(y_of(static_cast<double>(limit))) + "\" y2=\"" + number(y_of(static_cast<double>(limit))) +
                 "\" stroke=\"#c00000\" stroke-dasharray=\"6 3\"/>\n");
    }
    const double scale = plot_width_ / std::max(1.0, static_cast<double>(end_) - static_cast<double>(begin_));
    const double peak_x = kLeft + (static_cast<double>(panel.peak_time_ns) - static_cast<double>(begin_)) * scale;
    out_.write("<circle class=\"peak\" cx=\"" + number(peak_x) + "\" cy=\"" +
               number(y_of(static_cast<double>(panel.peak_bytes))) + "\" r=\"4\" fill=\"none\" stroke=\"black\"/>\n");
  }

  /// One category on top of those below it, as a stepped area.
  template <class YOf>
  void layer(const Panel& panel, Category category, std::vector<double>& base, const YOf& y_of) {
    const std::vector<double> below = base;
    for (std::size_t i = 0; i < base.size(); ++i) {
      base[i] += static_cast<double>(
          std::max<std::int64_t>(0, panel.columns[i].by_category[static_cast<std::size_t>(category)]));
    }
    const auto x_of = [](std::size_t i) { return std::to_string(kLeft + static_cast<int>(i)); };
    std::string path = "M" + x_of(0) + " " + number(y_of(base[0]));
    for (std::size_t i = 1; i < base.size(); ++i) {
      if (base[i] != base[i - 1]) path += "H" + x_of(i) + "V" + number(y_of(base[i]));
    }
    path += "H" + x_of(base.size()) + "V" + number(y_of(below.back()));
    for (std::size_t i = base.size() - 1; i > 0; --i) {
      if (below[i] != below[i - 1]) path += "H" + x_of(i) + "V" + number(y_of(below[i - 1]));
    }
    path += "H" + x_of(0);
    out_.write("<path class=\"" + std::string(to_string(category)) + "\" d=\"" + path + "Z\" fill=\"" +
               kColours[static_cast<std::size_t>(category)] + "\"/>\n");
  }

  template <class YOf>
  void axis(int top, double height, double most, const YOf& y_of) {
    for (int tick = 0; tick <= 4; ++tick) {
      const double bytes = most * tick / 4;
      const std::string y = number(y_of(bytes));
      out_.write("<line x1=\"" + std::to_string(kLeft) + "\" x2=\"" + std::to_string(kLeft + plot_width_) + "\" y1=\"" +
                 y + "\" y2=\"" + y + "\" stroke=\"#00000022\"/>\n");
      text(kLeft - 6, y_of(bytes) + 4, show_bytes(Bytes{static_cast<std::int64_t>(bytes)}), "end");
    }
    const double seconds = (static_cast<double>(end_) - static_cast<double>(begin_)) / 1e9;
    for (int tick = 0; tick <= 4; ++tick) {
      const char* anchor = tick == 0 ? "start" : tick == 4 ? "end" : "middle";
      text(kLeft + plot_width_ * tick / 4.0, top + height + 15, duration(Seconds{seconds * tick / 4}, 4), anchor);
    }
  }

  const Trace& trace_;
  OutputFile& out_;
  const MemorySvgOptions& options_;
  const int plot_width_;
  std::int64_t begin_ = 0, end_ = 0;
};

}  // namespace

Result<void> export_memory_svg(const Trace& trace, const std::filesystem::path& path, const MemorySvgOptions& options) {
  const std::vector<MemoryCurve> curves = memory_curves(trace);
  if (curves.empty()) {
    return Error{.code = Errc::contradiction,
                 .what = "the trace has no memory events to draw",
                 .where = path.string(),
                 .help = "another form: perfetto, chrome or csv"};
  }
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return out.error();
  SvgExporter(trace, *out, options).run(curves);
  return out->finish();
}

}  // namespace shard
