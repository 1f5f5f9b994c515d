// A run in progress: notices that files grew, and keeps the view where the user left it when they are read again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// Looks at sizes and times of change only.
class FileWatch {
 public:
  explicit FileWatch(const std::vector<std::string>& paths);
  /// Has any file changed since the last call that said so (at first: since construction)? A file that is gone has not.
  [[nodiscard]] bool changed();

 private:
  struct Stamp {
    std::uintmax_t bytes = 0;
    std::filesystem::file_time_type time{};
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  [[nodiscard]] std::vector<Stamp> stamps() const;

  std::vector<std::string> paths_;
  std::vector<Stamp> read_;
};

/// `state` of `before` for the same files read again: a view of everything shows everything again, one at the end stays
/// at the end at the same length, any other stays. What is selected is found again by what it is.
void carry_over(const Session& before, const Session& after, ViewState& state);

}  // namespace shard::view
