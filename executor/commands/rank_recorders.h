// Where the flight recorders of a run lie, who reads them when it breaks, and which of them stay.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/flight/read_recorder.h"
#include "executor/flight/recorder.h"
#include "executor/launch/job.h"
#include "sim/ir/plan_set.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Those of ranks that this process starts: files without a name, which go with this process however it ends.
class RankRecorders {
 public:
  /// A rank for which the system gives no file has none.
  explicit RankRecorders(int ranks);
  RankRecorders(const RankRecorders&) = delete;
  RankRecorders& operator=(const RankRecorders&) = delete;
  ~RankRecorders();

  /// By rank; -1 for none.
  [[nodiscard]] const std::vector<int>& descriptors() const { return descriptors_; }
  /// As recorders of ranks that are threads of this process; null where the system gives no file.
  [[nodiscard]] std::vector<std::unique_ptr<flight::Recorder>> map(const plan::PlanSet& plans) const;
  /// flight::verdict() of what they say now.
  [[nodiscard]] std::string verdict(const Suspects& suspects);
  /// Writes those that ranks have begun to `path`: one behind another, or a file each where that is a folder
  /// (is_folder()). False where no rank had begun.
  [[nodiscard]] Result<bool> keep(const std::string& path) const;

 private:
  std::vector<int> descriptors_;
  Suspects suspects_{};  ///< that the verdict was about
};

/// Of a rank whose launcher is none of ours: nobody else reads its recorder, so it speaks for itself. With a path it
/// lies in a file from the start.
class OwnRecorder {
 public:
  /// Errc::cannot_create where the file cannot be made, Errc::contradiction where several ranks would share one.
  [[nodiscard]] static Result<OwnRecorder> start(const std::string& path, const flight::Whose& whose,
                                                 const plan::Plan& plan);
  OwnRecorder(OwnRecorder&&) = default;
  OwnRecorder& operator=(OwnRecorder&&) = delete;

  [[nodiscard]] flight::Recorder* recorder() const { return recorder_.get(); }
  /// Where the file is, and with `place` flight::own_words(); "" where there is nothing to say. Any thread.
  [[nodiscard]] std::string words(bool place) const;
  /// The run ended well: the file goes.
  void remove() const;

 private:
  OwnRecorder(std::unique_ptr<flight::Recorder> recorder, std::filesystem::path file)
      : recorder_(std::move(recorder)), file_(std::move(file)) {}
  std::unique_ptr<flight::Recorder> recorder_;
  std::filesystem::path file_;  ///< empty: in memory
};

/// A path of --recorder that gets a file per rank: a folder, or a name that ends as one does.
[[nodiscard]] bool is_folder(const std::string& path);

}  // namespace shard::commands
