// A checkpoint that is being made: hidden until it is whole, then given its name in one call.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/state/checkpoint/layout.h"
#include "executor/state/checkpoint/manifest.h"
#include "traces/base/result.h"

namespace shard::checkpoint {

/// A file beside the tensors', held whole: a configuration, where the data stands.
struct SmallFile {
  std::string name;
  std::string text;
};

/// Of the first rank. The others write tensors into it with Part (part.h). Not synchronised.
class Draft {
 public:
  /// Makes `dir` where it is absent, in it a hidden directory, and all files, each with its whole size (a full disk is
  /// found now, where the file system can say) and its header. Names of `small` are the layout's no more than each
  /// other's. Errors: cannot_create.
  [[nodiscard]] static Result<Draft> create(const std::filesystem::path& dir, std::int64_t step, const Layout& layout,
                                            std::vector<SmallFile> small);
  Draft(Draft&&) noexcept;
  Draft& operator=(Draft&&) noexcept;
  /// Without commit() nothing stays, `dir` neither if it was made for this; as little after a signal (stop.h). What
  /// stays of a process that is killed is removed by prune() (directory.h).
  ~Draft();

  /// For Part::open(), of this process and of others.
  [[nodiscard]] const std::filesystem::path& path() const;
  /// Where it will be: dir/step-00000010.
  [[nodiscard]] std::filesystem::path name() const;

  /// When every Part has finished: `manifest.files` has the pieces of all of them (add_pieces(), in any order); those
  /// of headers and small files, sizes and the step are filled in here. Headers and small files are read again. From
  /// here on the checkpoint outlives a power failure. An earlier one of the same step is replaced: at no moment is
  /// there neither. Errors: internal where bytes of a file are in no piece or in two, io, cannot_create. An error that
  /// says "is saved" is one of making that durable.
  [[nodiscard]] Result<void> commit(Manifest manifest);

  /// What commit() begins with: fills in the manifest, reads headers and small files again, and brings all files to the
  /// disk. Errors: internal, io.
  [[nodiscard]] Result<void> check(Manifest& manifest);
  /// Behind check(), in place of commit(), for files that belong into `dir` itself: each gets its name there, replacing
  /// what had it, and there is no manifest. An index that is there goes first and the new one comes last, so that what
  /// is interrupted between two files has none. Errors: io, cannot_create.
  [[nodiscard]] Result<void> move_into_folder();

 private:
  struct State;
  explicit Draft(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shard::checkpoint
