// Sums of whole blocks come from prefix sums, their edges from the spans themselves; wide spans from a tree of maxima.
#include "viewer/index/lod.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

namespace shard::view {
namespace {

std::int64_t& of(ByClass& sum, SpanClass kind) {
  return sum[static_cast<std::size_t>(kind)];
}

}  // namespace

RowIndex::RowIndex(const SpanTable& table, std::vector<std::uint32_t> spans, std::vector<SpanClass> classes)
    : spans_(std::move(spans)), classes_(std::move(classes)) {
  assert(spans_.size() == classes_.size());
  near_.resize(spans_.size());
  std::array<bool, kSpanClassCount> occurs{};
  for (const SpanClass kind : classes_) occurs[static_cast<std::size_t>(kind)] = true;
  for (std::size_t c = 0; c < occurs.size(); ++c) {
    if (occurs[c]) kinds_.push_back(static_cast<SpanClass>(c));
  }
  const std::size_t blocks = (spans_.size() + kBlock - 1) / kBlock;
  block_begin_.reserve(blocks);
  block_sum_.reserve((blocks + 1) * kinds_.size());
  std::vector<std::int64_t> longest;
  longest.reserve(blocks);
  ByClass sum{};
  const auto keep_sum = [&] {
    for (const SpanClass kind : kinds_) block_sum_.push_back(of(sum, kind));
  };
  for (std::size_t block = 0; block < blocks; ++block) {
    block_begin_.push_back(table.begin_ns[spans_[block * kBlock]]);
    keep_sum();
    std::int64_t most = 0;
    for (std::size_t i = block * kBlock; i < std::min(spans_.size(), (block + 1) * kBlock); ++i) {
      const std::int64_t offset = table.begin_ns[spans_[i]] - block_begin_.back();
      const std::int64_t duration = table.duration_ns[spans_[i]];
      if (offset < kFar) near_[i].offset_ns = static_cast<std::uint32_t>(offset);
      if (duration < kFar) near_[i].duration_ns = static_cast<std::uint32_t>(duration);
      of(sum, classes_[i]) += duration;
      most = std::max(most, duration);
    }
    longest.push_back(most);
  }
  keep_sum();
  while (!longest.empty()) {
    longest_.push_back(std::move(longest));
    longest.clear();
    const std::vector<std::int64_t>& below = longest_.back();
    if (below.size() == 1) break;
    for (std::size_t i = 0; i < below.size(); i += kBlock) {
      const auto first = below.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = below.begin() + static_cast<std::ptrdiff_t>(std::min(below.size(), i + kBlock));
      longest.push_back(*std::max_element(first, last));
    }
  }
}

std::size_t RowIndex::begin_before(const SpanTable& table, std::int64_t time_ns) const {
  const auto block = std::lower_bound(block_begin_.begin(), block_begin_.end(), time_ns);
  if (block == block_begin_.begin()) return 0;
  std::size_t low = static_cast<std::size_t>(block - block_begin_.begin() - 1) * kBlock + 1;
  std::size_t high = std::min(spans_.size(), low - 1 + kBlock);
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (begin_of(table, middle) < time_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

RowIndex::Positions RowIndex::touching(const SpanTable& table, TimeRange range) const {
  if (range.empty()) return {};
  Positions positions{begin_before(table, range.begin_ns), begin_before(table, range.end_ns)};
  if (positions.first > 0) {
    const std::size_t before = positions.first - 1;
    if (begin_of(table, before) + duration_of(table, before) > range.begin_ns) positions.first = before;
  }
  return positions;
}

std::optional<std::size_t> RowIndex::at(const SpanTable& table, std::int64_t time_ns) const {
  // Behind a span that covers the time only spans of no length can begin before its end, and not on its row.
  const std::size_t next = begin_before(table, time_ns + 1);
  if (next == 0 || begin_of(table, next - 1) + duration_of(table, next - 1) <= time_ns) return std::nullopt;
  return next - 1;
}

ByClass RowIndex::busy(const SpanTable& table, TimeRange range) const {
  ByClass sum{};
  const Positions within = touching(table, range);
  std::size_t i = within.first;
  while (i < within.last) {
    const std::size_t block = i / kBlock, last_block = within.last / kBlock;
    // The first and the last span may be cut by the range; whole blocks between them are not.
    if (i % kBlock == 0 && i > within.first && last_block > block && last_block * kBlock < within.last) {
      add_blocks(sum, block, last_block);
      i = last_block * kBlock;
      continue;
    }
    const std::int64_t begin = begin_of(table, i), end = begin + duration_of(table, i);
    of(sum, classes_[i]) += std::max<std::int64_t>(0, std::min(end, range.end_ns) - std::max(begin, range.begin_ns));
    ++i;
  }
  return sum;
}

std::int64_t RowIndex::count(const SpanTable& table, TimeRange range) const {
  const Positions within = touching(table, range);
  return static_cast<std::int64_t>(within.last - within.first);
}

void RowIndex::wide_in(const SpanTable& table, Positions within, std::int64_t wide_ns,
                       std::vector<std::size_t>& out) const {
  // Depth first over the tree of maxima: one pending block per level.
  struct Pending {
    std::size_t level, next, last;
  };
  if (within.first >= within.last) return;
  std::vector<Pending> stack;
  const std::size_t top = longest_.size() - 1;
  stack.push_back({top, 0, longest_[top].size()});
  while (!stack.empty()) {
    Pending& pending = stack.back();
    if (pending.next == pending.last) {
      stack.pop_back();
      continue;
    }
    const std::size_t level = pending.level, block = pending.next++;
    std::size_t size = kBlock;
    for (std::size_t l = 0; l < level; ++l) size *= kBlock;
    if ((block + 1) * size <= within.first || block * size >= within.last || longest_[level][block] < wide_ns) continue;
    if (level > 0) {
      stack.push_back({level - 1, block * kBlock, std::min(longest_[level - 1].size(), (block + 1) * kBlock)});
      continue;
    }
    for (std::size_t i = std::max(within.first, block * size); i < std::min(within.last, (block + 1) * size); ++i) {
      if (duration_of(table, i) >= wide_ns) out.push_back(i);
    }
  }
}

void RowIndex::add_blocks(ByClass& sum, std::size_t first, std::size_t last) const {
  const std::int64_t* before = block_sum_.data() + first * kinds_.size();
  const std::int64_t* after = block_sum_.data() + last * kinds_.size();
  for (std::size_t k = 0; k < kinds_.size(); ++k) of(sum, kinds_[k]) += after[k] - before[k];
}

void RowIndex::columns_of(const SpanTable& table, const PixelRange& view, Positions run, RowPicture& out) const {
  const bool shared = view.cuts || view.width > view.time.length_ns();  // columns that cover the same nanosecond
  std::size_t i = run.first;
  std::int32_t column = view.column_of(begin_of(table, i));
  while (i < run.last && column < view.width) {
    const std::int64_t begin = view.begin(column), end = view.end(column);
    if (begin_of(table, i) >= end) {
      column = view.column_of(begin_of(table, i));
      continue;
    }
    BusyColumn busy{column, 0, {}};
    while (i < run.last) {
      const std::size_t block = i / kBlock;
      if (i % kBlock == 0 && block + 1 < block_begin_.size() && (block + 1) * kBlock <= run.last &&
          block_begin_[block + 1] < end && begin_of(table, i) >= begin) {
        // All blocks whose next one begins within the column lie in it whole.
        // Columns hold about as many spans as their neighbours, so the search doubles its steps from here.
        const std::size_t most = std::min(run.last / kBlock, block_begin_.size() - 1);
        std::size_t next = block + 1, stride = 1;
        while (next + stride <= most && block_begin_[next + stride] < end) {
          next += stride;
          stride *= 2;
        }
        for (; stride > 0; stride /= 2) {
          if (next + stride <= most && block_begin_[next + stride] < end) next += stride;
        }
        add_blocks(busy.busy_ns, block, next);
        busy.count += static_cast<std::int32_t>((next - block) * kBlock);
        i = next * kBlock;
        continue;
      }
      const std::int64_t span_begin = begin_of(table, i), span_end = span_begin + duration_of(table, i);
      if (span_begin >= end) break;
      of(busy.busy_ns, classes_[i]) += std::min(span_end, end) - std::max(span_begin, begin);
      ++busy.count;
      if (span_end > end) break;
      ++i;
    }
    // Narrow spans on both sides of a wide one may share its column.
    if (busy.count > 0 && !out.columns.empty() && out.columns.back().column == column) {
      BusyColumn& same = out.columns.back();
      same.count += busy.count;
      for (const SpanClass kind : kinds_) of(same.busy_ns, kind) += of(busy.busy_ns, kind);
    } else if (busy.count > 0) {
      out.columns.push_back(busy);
    }
    ++column;
    for (; shared && column < view.width && view.begin(column) == begin; ++column) {
      busy.column = column;
      out.columns.push_back(busy);
    }
  }
}

void RowIndex::draw(const SpanTable& table, const PixelRange& view, std::int64_t wide_ns, RowPicture& out) const {
  out.clear();
  const Positions within = touching(table, view.time);
  if (within.first >= within.last) return;
  std::vector<std::size_t> wide;
  wide_in(table, within, wide_ns, wide);
  std::size_t next = within.first;
  for (const std::size_t i : wide) {
    if (next < i) columns_of(table, view, {next, i}, out);
    next = i + 1;
    const std::int64_t begin = begin_of(table, i);
    out.wide.push_back({spans_[i], classes_[i], begin, begin + duration_of(table, i)});
  }
  if (next < within.last) columns_of(table, view, {next, within.last}, out);
}

std::int64_t wide_at_least(const PixelRange& view, double pixels) {
  const double each = static_cast<double>(view.time.length_ns()) / view.width;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(each * pixels)));
}

}  // namespace shard::view
