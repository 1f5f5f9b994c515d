// Sweeps the columns with the large blocks that are live, band by band.
#include "viewer/index/block_picture.h"

#include <algorithm>

#include "traces/base/wrapping.h"

namespace shard::view {
namespace {

/// A live block on its way through the columns.
struct Lying {
  std::uint32_t block = 0;
  std::int32_t since = 0;       // column
  std::int64_t low_bytes = -1;  // none yet
};

class Sweep {
 public:
  Sweep(const BlockList& blocks, const MemoryClasses& classes, const BlockDetail& detail, BlockPicture& out)
      : blocks_(blocks), classes_(classes), detail_(detail), out_(out), bands_(classes.all().size()) {}

  /// False where there are too many rectangles.
  bool run(const std::vector<std::uint32_t>& large) {
    out_.blocks.clear();
    std::size_t next = 0;
    const auto width = static_cast<std::int32_t>(out_.columns.size());
    for (std::int32_t c = 0; c < width; ++c) {
      const std::size_t moment = out_.columns[static_cast<std::size_t>(c)].highest_moment;
      if (c > 0 && moment == out_.columns[static_cast<std::size_t>(c - 1)].highest_moment) continue;
      for (std::vector<Lying>& band : bands_)
        std::erase_if(band, [&](const Lying& each) {
          const bool ended = blocks_.all()[each.block].end <= moment;
          if (ended) close(each, c);
          return ended;
        });
      for (; next < large.size() && blocks_.all()[large[next]].begin <= moment; ++next) {
        if (blocks_.all()[large[next]].end > moment) bands_[classes_.of(large[next])].push_back({large[next], c, -1});
      }
      place(c);
      if (out_.blocks.size() > detail_.most_rects) return false;
    }
    for (const std::vector<Lying>& band : bands_) {
      for (const Lying& each : band) close(each, width);
    }
    return out_.blocks.size() <= detail_.most_rects;
  }

 private:
  void place(std::int32_t c) {
    const ClassStack& stack = out_.stacks[static_cast<std::size_t>(c)];
    std::int64_t ground = 0;
    for (std::size_t b = 0; b < bands_.size(); ++b) {
      std::int64_t low = ground;
      const std::int64_t top = wrapping_sum(ground, std::max<std::int64_t>(0, stack.bytes[b]));
      const bool in_view = low < detail_.high_bytes && top > detail_.low_bytes;
      for (Lying& each : bands_[b]) {
        if (!in_view) {
          close(each, c);
          each.low_bytes = -1;
        } else if (each.low_bytes != low) {
          close(each, c);
          each.since = c;
          each.low_bytes = low;
        }
        low = wrapping_sum(low, blocks_.all()[each.block].bytes);
      }
      ground = top;
    }
  }
  void close(const Lying& each, std::int32_t end) {
    if (each.low_bytes < 0 || end <= each.since || each.low_bytes >= detail_.high_bytes) return;
    if (wrapping_sum(each.low_bytes, blocks_.all()[each.block].bytes) <= detail_.low_bytes) return;
    out_.blocks.push_back({each.since, end, each.low_bytes, each.block});
  }

  const BlockList& blocks_;
  const MemoryClasses& classes_;
  const BlockDetail& detail_;
  BlockPicture& out_;
  std::vector<std::vector<Lying>> bands_;
};

}  // namespace

void draw_blocks(const MemorySeries& series, const BlockList& blocks, const MemoryClasses& classes,
                 const PixelRange& view, const BlockDetail& detail, BlockPicture& out) {
  series.moments(view, out.columns);
  out.stacks.resize(out.columns.size());
  for (std::size_t c = 0; c < out.columns.size(); ++c) {
    const bool same = c > 0 && out.columns[c].highest_moment == out.columns[c - 1].highest_moment;
    out.stacks[c] = same ? out.stacks[c - 1] : classes.at(blocks, out.columns[c].highest_moment);
  }
  out.blocks.clear();
  out.least_bytes = std::max<std::int64_t>(1, detail.least_bytes);
  const std::size_t first = out.columns.front().highest_moment, last = out.columns.back().highest_moment;
  const double column_ns = static_cast<double>(view.time.length_ns()) / static_cast<double>(view.width);
  std::vector<std::uint32_t> large;
  for (;; out.least_bytes += out.least_bytes / 2 + 1) {
    large.clear();
    const std::vector<Block>& all = blocks.all();
    for (std::size_t b = 0; b < all.size() && all[b].begin <= last; ++b) {
      if (all[b].bytes < out.least_bytes || all[b].end <= first) continue;
      // What lives on over the edge of the picture, or of the recording, is long enough.
      const bool ends = all[b].end <= series.event_count() && all[b].end <= last && all[b].begin > first;
      const auto lives = static_cast<double>(ends ? series.time_of(all[b].end) - series.time_of(all[b].begin) : 0);
      if (ends && lives < column_ns * detail.least_columns) continue;
      large.push_back(static_cast<std::uint32_t>(b));
    }
    if (Sweep(blocks, classes, detail, out).run(large)) return;
  }
}

std::uint32_t block_at(const BlockPicture& picture, const BlockList& blocks, std::int32_t column, std::int64_t bytes) {
  for (const BlockRect& rect : picture.blocks) {
    if (rect.x0 <= column && column < rect.x1 && rect.low_bytes <= bytes &&
        bytes < rect.low_bytes + blocks.all()[rect.block].bytes)
      return rect.block;
  }
  return kNone;
}

std::size_t class_at(const BlockPicture& picture, std::int32_t column, std::int64_t bytes) {
  if (column < 0 || static_cast<std::size_t>(column) >= picture.stacks.size() || bytes < 0) return kMostClasses;
  std::int64_t top = 0;
  for (std::size_t c = 0; c < kMostClasses; ++c) {
    top = wrapping_sum(top, std::max<std::int64_t>(0, picture.stacks[static_cast<std::size_t>(column)].bytes[c]));
    if (bytes < top) return c;
  }
  return kMostClasses;
}

}  // namespace shard::view
