// A prefix that the run alone has, and the rank.
#include "executor/commands/rank_traces.h"

#include <cstdlib>

#include "traces/base/file_place.h"
#include "traces/base/temporary_files.h"
#include "traces/writer.h"

namespace shard::commands {
namespace {

namespace fs = std::filesystem;

/// Names are at most 255 bytes; this leaves room for the run and the rank.
constexpr std::size_t kNameKept = 200;

fs::path folder_for(const FilePlace& place) {
  if (place.kind == FilePlace::Kind::file) return place.path.parent_path();
  std::error_code fault;
  const fs::path temporary = fs::temp_directory_path(fault);
  return fault ? fs::path("/tmp") : temporary;
}

}  // namespace

RankTraces RankTraces::choose(const std::string& trace) {
  if (trace.empty()) return {};
  const Result<FilePlace> place = file_place(trace);
  if (!place) return RankTraces(unique_name(trace));  // cannot be written there, as whoever tries will say
  const std::string name = place->path.filename().string().substr(0, kNameKept);
  return RankTraces(unique_name((folder_for(*place) / name).string()));
}

RankTraces RankTraces::given_or_chosen(const std::string& trace) {
  const char* given = std::getenv(kVariable);
  if (trace.empty() || given == nullptr || *given == '\0') return choose(trace);
  return RankTraces(given);
}

fs::path RankTraces::of(std::int32_t rank) const {
  return prefix_ + ".rank" + std::to_string(rank);
}

void RankTraces::adopt(std::int32_t world_size) const {
  for (std::int32_t rank = 0; any() && rank < world_size; ++rank) temporary_files::adopt(of(rank));
}

void RankTraces::remove(std::int32_t world_size) const {
  adopt(world_size);
  for (std::int32_t rank = 0; any() && rank < world_size; ++rank) temporary_files::remove(of(rank));
}

Result<void> RankTraces::merge(std::int32_t world_size, const std::string& trace) const {
  if (!any()) return {};
  std::vector<fs::path> parts;
  for (std::int32_t rank = 0; rank < world_size; ++rank) parts.push_back(of(rank));
  const Result<MergeReport> merged = merge_traces(parts, trace, BrokenOff::refused);
  if (!merged) return merged.error();
  return {};
}

}  // namespace shard::commands
