// What a window shows from its first frame on: loading, then the session, then what the files grew to.
#pragma once

#include <optional>
#include <string>

#include "viewer/commands/loader.h"
#include "viewer/commands/notes_file.h"
#include "viewer/commands/view_log.h"
#include "viewer/commands/view_options.h"
#include "viewer/ui/frame.h"

namespace shard::view {

class LiveView {
 public:
  LiveView(const Sources& sources, const ViewOptions& options, bool log);

  /// What has been read since the last call, if any. An error at first is shown in place of the session; later on what
  /// is shown stays, and a notice says why it is not newer.
  void receive(std::optional<Result<Session>> loaded);
  /// One frame. Without a session, `progress`.
  void draw(const Frame& frame, const Loader::Progress& progress);

  [[nodiscard]] bool loading() const { return !session_; }
  [[nodiscard]] const ViewState& state() const { return state_; }
  [[nodiscard]] ViewState& state() { return state_; }
  /// Why nothing could be opened.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const Session& session() const { return *session_; }

 private:
  void open(Session session);
  void grow(Session session);
  void keep_notes();

  ViewOptions options_;
  std::optional<NotesFile> notes_;
  ViewLog log_;
  std::optional<Session> session_;
  std::optional<Error> error_;
  ViewState state_;
  Derived derived_;
};

}  // namespace shard::view
