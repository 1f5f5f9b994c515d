// Our own words found again in foreign files: streams, categories, phases, and what a GPU row is for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "traces/base/ids.h"
#include "traces/event.h"

namespace shard::import {

class Builder;
using RowId = Id<struct RowTag>;

/// The enumerator whose to_string() is `text`.
template <class Enum>
[[nodiscard]] std::optional<Enum> named(std::string_view text, int count) {
  for (int i = 0; i < count; ++i) {
    if (text == to_string(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  return std::nullopt;
}
[[nodiscard]] inline std::optional<Stream> stream_named(std::string_view text) {
  return named<Stream>(text, kStreamCount);
}
[[nodiscard]] inline std::optional<Category> category_named(std::string_view text) {
  return named<Category>(text, kCategoryCount);
}
[[nodiscard]] inline std::optional<Phase> phase_named(std::string_view text) {
  return named<Phase>(text, kPhaseCount);
}
[[nodiscard]] inline std::optional<Part> part_named(std::string_view text) {
  return named<Part>(text, kPartCount);
}

[[nodiscard]] inline std::optional<Activity> activity_named(std::string_view text) {
  return named<Activity>(text, kActivityCount);
}

/// "device memory": the counters that our exports draw memory with.
[[nodiscard]] inline std::optional<Memory> memory_counter_named(std::string_view text) {
  constexpr std::string_view kEnd = " memory";
  if (!text.ends_with(kEnd)) return std::nullopt;
  return named<Memory>(text.substr(0, text.size() - kEnd.size()), kMemoryCount);
}

/// What most of a GPU row's spans are, by the names that CUDA, NCCL and Kineto give them.
class StreamVotes {
 public:
  void add(Activity activity, std::string_view name) { ++votes_[static_cast<std::size_t>(of(activity, name))]; }
  /// Compute where nothing was counted.
  [[nodiscard]] Stream winner() const {
    return static_cast<Stream>(std::max_element(votes_.begin(), votes_.end()) - votes_.begin());
  }

 private:
  static Stream of(Activity activity, std::string_view name) {
    if (activity == Activity::copy) {
      if (name.find("HtoD") != std::string_view::npos) return Stream::copy_in;
      if (name.find("DtoH") != std::string_view::npos) return Stream::copy_out;
      return Stream::compute;
    }
    return is_collective(activity) ? Stream::communication : Stream::compute;
  }
  std::array<std::int64_t, kStreamCount> votes_{};
};

/// Rows of our own exports become the tracks that they were: a row is named after its stream or track, crossing spans
/// are on "NAME 2" and so on, which follow NAME.
class OurLanes {
 public:
  /// `category` is what the row's spans have; `number` counts rows, so that those of one track follow each other.
  void add(Builder& builder, RowId row, std::int64_t process, std::string_view category, const std::string& name,
           std::int64_t number);

 private:
  struct Base {
    RowId row{};
    std::int64_t number = 0;
  };
  std::map<std::tuple<std::int64_t, std::string, std::string>, Base> bases_;
};

/// Counters of bytes per category, turned into memory events: the difference to the sample before.
class MemoryCurves {
 public:
  using Values = std::array<std::optional<std::int64_t>, kCategoryCount>;
  /// One event per category whose value changed; one of zero bytes where none did.
  void sample(Builder& builder, Rank rank, Memory memory, std::int64_t time_ns, const Values& values);

 private:
  struct Curve {
    std::array<std::int64_t, kCategoryCount> now{};
    std::int32_t first_buffer = 0;
  };
  std::map<std::pair<Rank, Memory>, Curve> curves_;
};

}  // namespace shard::import
