// Receiving, drawing, keeping notes.
#include "viewer/commands/live_view.h"

#include "viewer/commands/follow.h"
#include "viewer/ui/text.h"
#include "viewer/ui/view.h"

namespace shard::view {
namespace {

std::int64_t event_count(const Session& session) {
  std::size_t count = 0;
  for (const Document& document : session.documents)
    count += document.trace().spans.size() + document.trace().memory.size();
  return static_cast<std::int64_t>(count);
}

}  // namespace

LiveView::LiveView(const Sources& sources, const ViewOptions& options, bool log) : options_(options), log_(log) {
  if (!sources.traces.empty()) notes_.emplace(sources.traces.front());
  state_.theme = options.theme;
}

void LiveView::receive(std::optional<Result<Session>> loaded) {
  if (!loaded) return;
  if (!*loaded) {
    if (session_ && !error_) {
      state_.notice = "what is in the file now cannot be read: " + loaded->error().what;
      return;
    }
    error_ = loaded->error();
    session_ = session_of(*error_);
    return;
  }
  if (session_ && !error_) {
    grow(std::move(**loaded));
  } else {
    open(std::move(**loaded));
  }
}

void LiveView::open(Session session) {
  Result<ViewState> first = first_state(session, options_);
  if (!first) {
    error_ = first.error();
    session_ = session_of(*error_);
    return;
  }
  error_.reset();
  state_ = std::move(*first);
  if (notes_) {
    if (Result<std::vector<Note>> notes = notes_->load()) {
      state_.notes = std::move(*notes);
    } else {
      const Error& error = notes.error();
      session.problems.push_back({error.where, error.what, "the trace is shown without notes", error.help});
    }
  }
  session_ = std::move(session);
}

void LiveView::grow(Session session) {
  const std::int64_t more = event_count(session) - event_count(*session_);
  carry_over(*session_, session, state_);
  derived_ = {};
  session_ = std::move(session);
  state_.notice = "read again: " + std::string(more < 0 ? "" : "+") + show_count(more) + " events";
}

void LiveView::draw(const Frame& frame, const Loader::Progress& progress) {
  if (!session_) {
    draw_loading_view(progress.what, progress.share, frame);
    return;
  }
  draw_view(*session_, state_, derived_, frame);
  keep_notes();
  log_.note(*session_, state_);
}

void LiveView::keep_notes() {
  if (!notes_ || error_) return;
  const Result<void> saved = notes_->save(state_.notes);
  if (!saved) state_.notice = "the notes could not be saved: " + saved.error().what;
}

}  // namespace shard::view
