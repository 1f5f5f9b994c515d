// Watching and carrying over.
#include "viewer/commands/follow.h"

#include <algorithm>
#include <cmath>

namespace shard::view {
namespace {

/// The end of the data counts as in view within this share of the view's length.
constexpr double kNearTheEnd = 0.05;

std::optional<SpanRef> find_again(const Session& before, const Session& after, SpanRef ref) {
  if (ref.document >= after.documents.size()) return std::nullopt;
  const Document& old = before.documents[ref.document];
  const Document& now = after.documents[ref.document];
  const Span wanted = old.trace().spans[ref.span];
  const std::string name = old.name_of(ref.span);
  const SpanTable& spans = now.trace().spans;
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    if (spans.begin_ns[i] == wanted.begin_ns && spans.duration_ns[i] == wanted.duration_ns &&
        spans.op[i] == wanted.op && now.rank_of(i) == old.rank_of(ref.span) && now.name_of(i) == name)
      return SpanRef{ref.document, i};
  }
  return std::nullopt;
}

}  // namespace

FileWatch::FileWatch(const std::vector<std::string>& paths) : paths_(paths), read_(stamps()) {}

std::vector<FileWatch::Stamp> FileWatch::stamps() const {
  std::vector<Stamp> result;
  for (const std::string& path : paths_) {
    std::error_code gone;
    Stamp stamp;
    stamp.bytes = std::filesystem::file_size(path, gone);
    if (!gone) stamp.time = std::filesystem::last_write_time(path, gone);
    result.push_back(gone ? Stamp{} : stamp);
  }
  return result;
}

bool FileWatch::changed() {
  const std::vector<Stamp> now = stamps();
  bool any = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] == read_[i] || now[i] == Stamp{}) continue;
    read_[i] = now[i];
    any = true;
  }
  return any;
}

void carry_over(const Session& before, const Session& after, ViewState& state) {
  if (before.empty() || after.empty()) {
    const ThemeName theme = state.theme;
    state = initial_state(after);
    state.theme = theme;
    return;
  }
  const TimeRange old_whole = whole_range(before, state.align);
  const TimeRange new_whole = whole_range(after, state.align);
  const TimeRange seen = visible(state.camera);
  const double near = kNearTheEnd * state.camera.length_ns;
  const auto is_near = [&](std::int64_t a, std::int64_t b) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= near;
  };
  const bool all = seen.begin_ns <= old_whole.begin_ns && seen.end_ns >= old_whole.end_ns;
  if (all) {
    state.camera = fit(state.camera.origin_ns, new_whole);
  } else if (is_near(seen.end_ns, old_whole.end_ns)) {
    state.camera.begin_ns += static_cast<double>(new_whole.end_ns - old_whole.end_ns);
  }
  if (state.selected) state.selected = find_again(before, after, *state.selected);
  if (state.block) {
    const MemoryTable &old = before.documents[0].trace().memory, &now = after.documents[0].trace().memory;
    const std::uint32_t event = state.block->event;
    if (event >= old.size() || event >= now.size() || !(old[event] == now[event])) state.block.reset();
  }
  state.document = std::min(state.document, after.documents.size() - 1);
}

}  // namespace shard::view
