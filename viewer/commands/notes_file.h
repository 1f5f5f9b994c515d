// Notes in a file beside the trace: measured.sst has measured.sst.notes.json. The trace itself is never written to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// {"schema_version": 1, "notes": [{"time_ns": on the trace's clock, "text": "..."}]}
class NotesFile {
 public:
  explicit NotesFile(const std::filesystem::path& trace);

  /// By time; none where there is no file. Fails with Errc::malformed for a file that holds something else: it is then
  /// left as it is, and save() refuses.
  [[nodiscard]] Result<std::vector<Note>> load();
  /// Writes what differs from what was read or written last; without notes the file is removed. Errc::cannot_create or
  /// Errc::io; called again with the same notes after a failure it does nothing.
  [[nodiscard]] Result<void> save(const std::vector<Note>& notes);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<Note> last_;
  bool usable_ = true;
};

/// What an argument that names a trace makes a command read.
[[nodiscard]] std::vector<std::filesystem::path> trace_and_notes(const std::string& trace);

}  // namespace shard::view
