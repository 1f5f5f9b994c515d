// A folder of checkpoints: which there are, which is the newest, which go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/base/result.h"

namespace shard::checkpoint {

struct Listed {
  std::filesystem::path path;
  std::int64_t step = 0;
  std::int64_t tokens = 0;  ///< by the manifest; 0 where that cannot be read
  std::int64_t bytes = 0;   ///< of its files, without the manifest; 0 where that cannot be read
  bool complete = false;    ///< the manifest is right, and all files are there with their sizes
  std::string why_not;      ///< what is wrong; empty where it is complete
};

/// All that are called step-NUMBER, the newest last. Where saving a step again was interrupted between its two renames
/// the older one, whole, stands in under its hidden name (names.h). A folder that is absent has none. Errors: no_input
/// where it cannot be read.
[[nodiscard]] Result<std::vector<Listed>> list(const std::filesystem::path& dir);

/// The path itself where it is a checkpoint (has a manifest.json, right or wrong: Reader::open() says), else the newest
/// complete one in it. Errors: no_input, with what is there instead.
[[nodiscard]] Result<std::filesystem::path> newest(const std::filesystem::path& path);

/// Removes complete ones but the newest `keep` (at least 1). Each is first hidden by a rename, then its manifest goes.
/// Removes, too, what died: hidden directories whose maker's lock can be taken (io.h); a replaced checkpoint whose
/// step has no other gets its name back instead. Where the file system has no locks those stay. Errors: io, no_input.
[[nodiscard]] Result<void> prune(const std::filesystem::path& dir, std::int64_t keep);

/// Reads every byte of every file, and checks every hash. Errors: as Reader's.
[[nodiscard]] Result<void> verify(const std::filesystem::path& checkpoint);

/// Is there room for so many more bytes in `dir`, or in what it would be made in? Errors: cannot_create, with bytes
/// needed and free.
[[nodiscard]] Result<void> check_room(const std::filesystem::path& dir, std::int64_t bytes);

}  // namespace shard::checkpoint
