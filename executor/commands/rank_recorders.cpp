// Files in memory without a name; files with one where --recorder says so.
#include "executor/commands/rank_recorders.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "executor/flight/verdict.h"
#include "traces/base/output_file.h"

namespace shard::commands {
namespace {

namespace fs = std::filesystem;

fs::path file_of_rank(const std::string& folder, std::int32_t rank) {
  return fs::path(folder) / ("rank" + std::to_string(rank) + std::string(kRecorderEnding));
}

/// Made where it is absent.
Result<void> make_folder(const std::string& path) {
  std::error_code fault;
  fs::create_directories(path, fault);
  if (fault)
    return Error{Errc::cannot_create, "the folder cannot be made: " + fault.message(), path, "another --recorder"};
  return {};
}

flight::Seen seen_of(const Suspects& suspects, Rank rank) {
  if (suspects.dead == rank) return flight::Seen::dead;
  return std::ranges::find(suspects.silent, rank) != suspects.silent.end() ? flight::Seen::silent
                                                                           : flight::Seen::nothing;
}

}  // namespace

RankRecorders::RankRecorders(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) descriptors_.push_back(memfd_create("shardscope-recorder", MFD_CLOEXEC));
}

RankRecorders::~RankRecorders() {
  for (const int descriptor : descriptors_)
    if (descriptor >= 0) close(descriptor);
}

std::vector<std::unique_ptr<flight::Recorder>> RankRecorders::map(const plan::PlanSet& plans) const {
  std::vector<std::unique_ptr<flight::Recorder>> recorders;
  const auto world = static_cast<std::int32_t>(descriptors_.size());
  for (std::int32_t rank = 0; rank < world; ++rank) {
    recorders.emplace_back();
    const int descriptor = descriptors_[static_cast<std::size_t>(rank)];
    if (descriptor < 0) continue;
    auto mapped = flight::Recorder::map(descriptor, {.rank = Rank{rank}, .world = world, .plan_hash = plans.hash},
                                        plans.of_rank(rank));
    if (mapped) recorders.back() = std::move(*mapped);
  }
  return recorders;
}

std::string RankRecorders::verdict(const Suspects& suspects) {
  suspects_ = suspects;
  std::vector<flight::Recording> recordings;
  for (std::size_t rank = 0; rank < descriptors_.size(); ++rank) {
    const auto read = flight::read_recordings(flight::content_of(descriptors_[rank]));
    if (read && read->size() == 1 && read->front().rank == static_cast<std::int32_t>(rank))
      recordings.push_back(read->front());
  }
  flight::Fault fault;
  if (suspects.dead) fault.dead = suspects.dead->value;
  for (const Rank rank : suspects.silent) fault.silent.push_back(rank.value);
  fault.now_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return flight::verdict(recordings, fault);
}

Result<bool> RankRecorders::keep(const std::string& path) const {
  bool kept = false;
  std::string all;
  const bool folder = is_folder(path);
  for (std::size_t rank = 0; rank < descriptors_.size(); ++rank) {
    std::vector<std::byte> content = flight::content_of(descriptors_[rank]);
    if (content.empty() || !flight::read_recordings(content)) continue;
    const flight::Seen seen = seen_of(suspects_, Rank{static_cast<std::int32_t>(rank)});
    std::memcpy(content.data() + offsetof(flight::Header, seen), &seen, sizeof seen);
    kept = true;
    const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    if (!folder) {
      all += text;
      continue;
    }
    if (Result<void> made = make_folder(path); !made) return made.error();
    if (Result<void> written = write_file(file_of_rank(path, static_cast<std::int32_t>(rank)), text); !written)
      return written.error();
  }
  if (kept && !folder)
    if (Result<void> written = write_file(path, all); !written) return written.error();
  return kept;
}

Result<OwnRecorder> OwnRecorder::start(const std::string& path, const flight::Whose& whose, const plan::Plan& plan) {
  if (path.empty()) {
    auto made = flight::Recorder::in_memory(whose, plan);
    if (!made) return made.error();
    return OwnRecorder(std::move(*made), {});
  }
  const bool folder = is_folder(path);
  if (!folder && whose.world > 1)
    return Error{Errc::contradiction, "ranks of a launcher keep a file each, and this names one", "--recorder " + path,
                 "--recorder " + path + "/"};
  if (folder)
    if (Result<void> made = make_folder(path); !made) return made.error();
  const fs::path file = folder ? file_of_rank(path, whose.rank.value) : fs::path(path);
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return Error{Errc::cannot_create, std::string("cannot be written: ") + std::strerror(errno), file.string(),
                 "another --recorder"};
  auto made = flight::Recorder::map(descriptor, whose, plan);
  close(descriptor);
  if (!made) {
    std::error_code ignored;
    fs::remove(file, ignored);
    return made.error();
  }
  return OwnRecorder(std::move(*made), file);
}

std::string OwnRecorder::words(bool place) const {
  const auto read = flight::read_recordings(recorder_->snapshot());
  std::string text = read && place ? flight::own_words(read->front()) : std::string();
  if (!file_.empty()) text += (text.empty() ? "the recorder is in " : "; its recorder is in ") + file_.string();
  return text;
}

void OwnRecorder::remove() const {
  std::error_code ignored;
  if (!file_.empty()) fs::remove(file_, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code fault;
  return path.ends_with('/') || fs::is_directory(path, fault);
}

}  // namespace shard::commands
