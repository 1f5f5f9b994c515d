// Only names that names.h knows are touched: what else lies in the folder is its owner's.
#include "executor/state/checkpoint/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/state/checkpoint/io.h"
#include "executor/state/checkpoint/names.h"
#include "executor/state/checkpoint/reader.h"
#include "traces/base/numbers.h"

namespace shard::checkpoint {
namespace {

namespace fs = std::filesystem;

/// A directory of ours.
struct OursInFolder {
  fs::path path;
  DirectoryName name;
};

Result<std::vector<OursInFolder>> ours_in(const fs::path& dir) {
  std::vector<OursInFolder> ours;
  std::error_code fault;
  for (fs::directory_iterator at(dir, fault), end; !fault && at != end; at.increment(fault)) {
    const std::optional<DirectoryName> name = parse_directory_name(at->path().filename().string());
    std::error_code gone;
    if (name && at->is_directory(gone)) ours.push_back({at->path(), *name});
  }
  if (fault && fault != std::errc::no_such_file_or_directory)
    return io::failure(Errc::no_input, "the folder of checkpoints cannot be read", fault.value(), dir);
  std::ranges::sort(ours, [](const OursInFolder& a, const OursInFolder& b) {
    return std::pair(a.name.step, a.path) < std::pair(b.name.step, b.path);
  });
  return ours;
}

Listed look_at(const OursInFolder& ours) {
  Listed listed{.path = ours.path, .step = ours.name.step, .tokens = 0, .bytes = 0, .complete = false, .why_not = {}};
  const Result<Manifest> manifest = read_manifest(ours.path);
  if (!manifest) return listed.why_not = manifest.error().what, listed;
  listed.tokens = manifest->tokens;
  for (const FileEntry& file : manifest->files) listed.bytes += file.bytes;
  if (manifest->step != ours.name.step)
    return listed.why_not = "is of step " + std::to_string(manifest->step) + " by its manifest", listed;
  for (const FileEntry& file : manifest->files) {
    struct stat status {};
    if (::stat((ours.path / file.name).c_str(), &status) != 0)
      return listed.why_not = file.name + " is not there", listed;
    if (!S_ISREG(status.st_mode)) return listed.why_not = file.name + " is no file", listed;
    if (status.st_size != file.bytes)
      return listed.why_not = file.name + " has " + std::to_string(status.st_size) + " bytes, not the manifest's " +
                              std::to_string(file.bytes),
             listed;
  }
  listed.complete = true;
  return listed;
}

bool has_step(const std::vector<OursInFolder>& ours, std::int64_t step) {
  return std::ranges::any_of(
      ours, [&](const OursInFolder& each) { return each.name.kind == DirectoryKind::step && each.name.step == step; });
}

/// Names in a folder, a few of them.
std::string what_is_in(const fs::path& dir) {
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::directory_iterator at(dir, fault), end; !fault && at != end; at.increment(fault))
    names.push_back(at->path().filename().string());
  if (names.empty()) return "it is empty";
  std::ranges::sort(names);
  std::string text = "it has ";
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() <= kShown ? text : text + " and " + std::to_string(names.size() - kShown) + " more";
}

/// Of a hidden directory: nobody works in it, and as long as `lock` lives nobody else prunes it.
bool maker_is_dead(const fs::path& path, io::Descriptor& lock) {
  return io::open(path, O_RDONLY | O_DIRECTORY, lock) == 0 && io::lock(lock) == 0;
}

Result<void> remove_checkpoint(const fs::path& path, std::int64_t step) {
  const fs::path hidden = path.parent_path() / hidden_name(step, DirectoryKind::removed);
  io::Descriptor lock;
  if (io::open(path, O_RDONLY | O_DIRECTORY, lock) == 0) static_cast<void>(io::lock(lock));
  if (const int why = io::rename(path, hidden); why != 0)
    return io::failure(Errc::io, "an old checkpoint cannot be removed", why, path);
  if (const int why = io::remove_directory(hidden); why != 0)
    return io::failure(Errc::io, "an old checkpoint cannot be removed", why, hidden);
  return {};
}

}  // namespace

Result<std::vector<Listed>> list(const fs::path& dir) {
  const Result<std::vector<OursInFolder>> ours = ours_in(dir);
  if (!ours) return ours.error();
  std::vector<Listed> listed;
  for (const OursInFolder& each : *ours) {
    if (each.name.kind == DirectoryKind::step) listed.push_back(look_at(each));
    if (each.name.kind != DirectoryKind::replaced || has_step(*ours, each.name.step)) continue;
    if (Listed hidden = look_at(each); hidden.complete) listed.push_back(std::move(hidden));
  }
  return listed;
}

Result<fs::path> newest(const fs::path& path) {
  std::error_code fault;
  if (fs::exists(path / kManifestFile, fault)) return path;
  const fs::file_status status = fs::status(path, fault);
  if (!fs::exists(status))
    return Error{Errc::no_input, "there is no such folder of checkpoints", path.string(),
                 "the folder of a run that saved some, or one checkpoint in it"};
  if (!fs::is_directory(status))
    return Error{Errc::no_input, "is a file, not a checkpoint or a folder of them", path.string(),
                 "the folder of a run that saved some, or one checkpoint in it"};
  const Result<std::vector<Listed>> listed = list(path);
  if (!listed) return listed.error();
  const auto found = std::find_if(listed->rbegin(), listed->rend(), [](const Listed& each) { return each.complete; });
  if (found != listed->rend()) return found->path;
  if (listed->empty())
    return Error{Errc::no_input, "has no checkpoint; " + what_is_in(path), path.string(),
                 "the folder of a run that saved some, or one checkpoint in it"};
  return Error{Errc::no_input,
               "has no complete checkpoint; the newest is " + listed->back().path.filename().string() + ", which " +
                   listed->back().why_not,
               path.string(), "another folder: nothing of these can be resumed"};
}

Result<void> prune(const fs::path& dir, std::int64_t keep) {
  const Result<std::vector<OursInFolder>> ours = ours_in(dir);
  if (!ours) return ours.error();
  for (const OursInFolder& each : *ours) {
    io::Descriptor lock;
    if (each.name.kind == DirectoryKind::step || !maker_is_dead(each.path, lock)) continue;
    if (each.name.kind == DirectoryKind::replaced && !fs::exists(dir / step_name(each.name.step)) &&
        look_at(each).complete) {
      const int why = io::rename_with(each.path, dir / step_name(each.name.step), RENAME_NOREPLACE);
      if (why == EINVAL || why == ENOSYS) static_cast<void>(io::rename(each.path, dir / step_name(each.name.step)));
      continue;
    }
    if (const int why = io::remove_directory(each.path); why != 0 && why != ENOENT)
      return io::failure(Errc::io, "what an interrupted save left cannot be removed", why, each.path);
  }
  Result<std::vector<Listed>> listed = list(dir);
  if (!listed) return listed.error();
  std::erase_if(*listed, [](const Listed& each) { return !each.complete; });
  const auto old = std::ssize(*listed) - std::max<std::int64_t>(keep, 1);
  for (std::int64_t i = 0; i < old; ++i) {
    const Listed& each = (*listed)[static_cast<std::size_t>(i)];
    if (Result<void> removed = remove_checkpoint(each.path, each.step); !removed) return removed;
  }
  return {};
}

Result<void> verify(const fs::path& checkpoint) {
  const Result<Reader> reader = Reader::open(checkpoint);
  if (!reader) return reader.error();
  return reader->verify();
}

Result<void> check_room(const fs::path& dir, std::int64_t bytes) {
  fs::path there = without_slash(fs::absolute(dir));
  std::error_code fault;
  while (!fs::exists(there, fault) && there.has_relative_path()) there = there.parent_path();
  struct statvfs room {};
  if (::statvfs(there.c_str(), &room) != 0)
    return io::failure(Errc::cannot_create, "the room for checkpoints is not known", errno, dir);
  // Blocks of 2^64 bytes in all there are not, but file systems that say so.
  const __uint128_t free = static_cast<__uint128_t>(room.f_bavail) * room.f_frsize;
  if (free >= static_cast<__uint128_t>(std::max<std::int64_t>(bytes, 0))) return {};
  return Error{Errc::cannot_create,
               "a checkpoint takes " + show_bytes(Bytes{bytes}) + " (" + with_commas(bytes) + " bytes); " +
                   show_bytes(Bytes{static_cast<std::int64_t>(free)}) + " are free",
               dir.string(), "free some space, or save to another disk"};
}

}  // namespace shard::checkpoint
