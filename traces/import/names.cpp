// A category's bytes are one buffer that grows and shrinks: which buffers they were, a counter does not say.
#include "traces/import/names.h"

#include "traces/import/builder.h"
#include "traces/import/json_reader.h"

namespace shard::import {

void MemoryCurves::sample(Builder& builder, Rank rank, Memory memory, std::int64_t time_ns, const Values& values) {
  const auto [at, added] = curves_.try_emplace({rank, memory});
  Curve& curve = at->second;
  if (added) curve.first_buffer = static_cast<std::int32_t>((curves_.size() - 1) * kCategoryCount);
  bool any = false;
  const auto event = [&](int category, std::int64_t delta) {
    builder.memory({.rank = rank,
                    .memory = memory,
                    .buffer = BufferId{curve.first_buffer + category},
                    .delta_bytes = delta,
                    .category = static_cast<Category>(category),
                    .time_ns = time_ns});
    any = true;
  };
  std::optional<int> known;
  for (int c = 0; c < kCategoryCount; ++c) {
    const auto& value = values[static_cast<std::size_t>(c)];
    if (!value) continue;
    if (!known) known = c;
    std::int64_t& now = curve.now[static_cast<std::size_t>(c)];
    const auto delta = static_cast<std::int64_t>(static_cast<std::uint64_t>(*value) - static_cast<std::uint64_t>(now));
    now = *value;
    if (delta != 0) event(c, delta);
  }
  if (!any && known) event(*known, 0);
}

void OurLanes::add(Builder& builder, RowId row, std::int64_t process, std::string_view category,
                   const std::string& name, std::int64_t number) {
  const std::optional<Stream> stream = stream_named(category);
  Track& track = builder.row(row);
  track.kind = stream ? TrackKind::stream : TrackKind::other;
  track.stream = stream.value_or(Stream::compute);
  const std::string plain = stream ? to_string(*stream) : "other";
  track.name = name == plain ? "" : name;
  bases_.emplace(std::tuple(process, std::string(category), name), Base{row, number});
  const std::size_t space = name.rfind(' ');
  std::int64_t lane = 0;
  if (space == std::string::npos || !to_integer(std::string_view(name).substr(space + 1), lane) || lane < 2) return;
  const auto base = bases_.find({process, std::string(category), name.substr(0, space)});
  if (base != bases_.end() && number - base->second.number == lane - 1) builder.merge_row(row, base->second.row);
}

}  // namespace shard::import
