// Two writers of one folder do not disturb each other: each has a hidden directory of its own until the last call.
#include "executor/state/checkpoint/draft.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "executor/state/checkpoint/hash.h"
#include "executor/state/checkpoint/io.h"
#include "executor/state/checkpoint/names.h"
#include "traces/base/stop.h"

namespace shard::checkpoint {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> draft_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The pieces of bytes that this rank has whole.
std::vector<Piece> draft_pieces(std::string_view text) {
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at < text.size(); at += static_cast<std::size_t>(kPieceBytes)) {
    const std::string_view part = text.substr(at, static_cast<std::size_t>(kPieceBytes));
    pieces.push_back({static_cast<std::int64_t>(at), static_cast<std::int64_t>(part.size()), hash_of(part)});
  }
  return pieces;
}

/// Does the file begin with that?
Result<void> draft_reads_as(const io::Descriptor& file, std::string_view text, const fs::path& path) {
  std::vector<std::byte> block(std::min(text.size(), static_cast<std::size_t>(kPieceBytes)));
  for (std::size_t at = 0; at < text.size();) {
    const auto part = std::span(block).first(std::min(block.size(), text.size() - at));
    std::size_t got = 0;
    if (const int why = io::read_at(file, static_cast<std::int64_t>(at), part, got); why != 0)
      return io::failure(Errc::io, "what was written cannot be read", why, path);
    if (got != part.size() || std::memcmp(part.data(), text.data() + at, got) != 0)
      return Error{Errc::io, "what was written reads differently: its first " + std::to_string(text.size()) + " bytes",
                   path.string(), "another disk"};
    at += got;
  }
  return {};
}

}  // namespace

struct Draft::State {
  fs::path dir;
  fs::path path;
  std::int64_t step = 0;
  bool made_dir = false;
  bool there = false;  ///< `path` is, and is to be removed
  io::Descriptor lock;
  stop::Registration at_stop;
  std::vector<Layout::File> files;
  std::vector<SmallFile> small;

  ~State() {
    if (there) static_cast<void>(io::remove_directory(path));
    std::error_code ignored;
    if (made_dir) fs::remove(dir, ignored);  // only if it is empty
  }

  [[nodiscard]] Result<void> make_directories();
  [[nodiscard]] int make_hidden();
  [[nodiscard]] Result<void> make_file(const std::string& name, std::string_view begin, std::int64_t bytes) const;
  [[nodiscard]] Result<void> fill(Manifest& manifest) const;
  /// Reads again what the file begins with, and brings it to the disk.
  [[nodiscard]] Result<void> settle(const std::string& name, std::string_view begin) const;
  [[nodiscard]] Result<void> give_name();
  [[nodiscard]] Result<void> move_files();
  [[nodiscard]] int replace(const fs::path& target);
};

Result<void> Draft::State::make_directories() {
  const stop::NotNow hold;
  std::error_code fault;
  fs::create_directories(dir.parent_path().empty() ? "." : dir.parent_path(), fault);
  if (const int why = io::make_directory(dir); why == 0)
    made_dir = true;
  else if (why != EEXIST)
    return io::failure(Errc::cannot_create, "the folder cannot be made", why, dir);
  if (!fs::is_directory(dir, fault))
    return Error{Errc::cannot_create, "is no folder; checkpoints are saved into one", dir.string(),
                 "the name of a folder"};
  int why = EAGAIN;
  // Whoever prunes may take the lock of a directory that was just made, and then removes it.
  for (int tries = 0; why == EAGAIN && tries < 100; ++tries) why = make_hidden();
  if (why != 0) return io::failure(Errc::cannot_create, "a checkpoint cannot be made in this folder", why, dir);
  at_stop = stop::at_stop([partial = path, folder = dir, made = made_dir] {
    static_cast<void>(io::remove_directory(partial));
    std::error_code ignored;
    if (made) fs::remove(folder, ignored);
  });
  return {};
}

int Draft::State::make_hidden() {
  path = dir / hidden_name(step, DirectoryKind::partial);
  if (const int why = io::make_directory(path); why != 0) return why;
  there = true;
  if (const int why = io::open(path, O_RDONLY | O_DIRECTORY, lock); why != 0) return why == ENOENT ? EAGAIN : why;
  // Where there are no locks prune() cannot take one either, and leaves the directory alone.
  if (io::lock(lock) == EWOULDBLOCK) return EAGAIN;
  std::error_code fault;
  return fs::exists(path, fault) ? 0 : EAGAIN;
}

Result<void> Draft::State::make_file(const std::string& name, std::string_view begin, std::int64_t bytes) const {
  io::Descriptor file;
  if (const int why = io::open(path / name, O_RDWR | O_CREAT | O_EXCL, file); why != 0)
    return io::failure(Errc::cannot_create, "the file cannot be created", why, path / name);
  if (const int why = io::reserve(file, bytes); why != 0)
    return io::failure(Errc::cannot_create, "there is no room for its " + std::to_string(bytes) + " bytes", why,
                       path / name);
  if (const int why = io::write_at(file, 0, draft_bytes(begin)); why != 0)
    return io::failure(Errc::cannot_create, "writing failed", why, path / name);
  return {};
}

Result<void> Draft::State::fill(Manifest& manifest) const {
  manifest.step = step;
  for (const Layout::File& file : files) add_pieces(manifest, {{file.name, draft_pieces(file.head)}});
  for (const SmallFile& file : small) add_pieces(manifest, {{file.name, draft_pieces(file.text)}});
  std::vector<FileEntry> entries;
  const auto take = [&](const std::string& name, std::int64_t bytes) -> Result<void> {
    const auto given = std::ranges::find(manifest.files, name, &FileEntry::name);
    FileEntry entry = std::move(*given);
    manifest.files.erase(given);
    entry.bytes = bytes;
    std::ranges::sort(entry.pieces, {}, &Piece::offset);
    Result<void> right = check_pieces(entry, path.string());
    entries.push_back(std::move(entry));
    if (!right) return Error{Errc::internal, right.error().what, path.string(), ""};
    return {};
  };
  for (const Layout::File& file : files)
    if (Result<void> taken = take(file.name, file.bytes); !taken) return taken;
  for (const SmallFile& file : small)
    if (Result<void> taken = take(file.name, static_cast<std::int64_t>(file.text.size())); !taken) return taken;
  if (!manifest.files.empty())
    return Error{Errc::internal, "pieces of a file that the checkpoint has not: " + manifest.files.front().name,
                 path.string(), ""};
  manifest.files = std::move(entries);
  return {};
}

Result<void> Draft::State::settle(const std::string& name, std::string_view begin) const {
  io::Descriptor file;
  if (const int why = io::open(path / name, O_RDWR, file); why != 0)
    return io::failure(Errc::io, "what was written cannot be opened", why, path / name);
  if (Result<void> same = draft_reads_as(file, begin, path / name); !same) return same;
  if (const int why = io::sync(file); why != 0)
    return io::failure(Errc::io, "what was written does not reach the disk", why, path / name);
  return {};
}

/// Puts `path` where another checkpoint is.
int Draft::State::replace(const fs::path& target) {
  int why = io::rename_with(path, target, RENAME_EXCHANGE);
  if (why == 0) {
    if (const int unsynced = io::sync_directory(dir); unsynced != 0) return there = false, unsynced;
    return 0;  // `path` is what was there, and goes
  }
  if (why != EINVAL && why != ENOSYS) return why;
  // Two renames. Between them, and if this process dies there, list() gives the older one under its hidden name.
  const fs::path old = dir / hidden_name(step, DirectoryKind::replaced);
  io::Descriptor old_lock;
  if (why = io::open(target, O_RDONLY | O_DIRECTORY, old_lock); why != 0) return why;
  static_cast<void>(io::lock(old_lock));
  if (why = io::rename(target, old); why != 0) return why;
  if (why = io::rename(path, target); why != 0) {
    static_cast<void>(io::rename(old, target));
    return why;
  }
  there = false;
  if (why = io::sync_directory(dir); why != 0) return why;
  static_cast<void>(io::remove_directory(old));  // prune() tries again
  return 0;
}

Result<void> Draft::State::give_name() {
  const fs::path target = dir / step_name(step);
  const stop::NotNow hold;
  struct stat status {};
  const bool taken = ::lstat(target.c_str(), &status) == 0;
  if (taken && !S_ISDIR(status.st_mode))
    return Error{Errc::cannot_create, "is no folder; a checkpoint is to have this name", target.string(),
                 "another name for what is there"};
  // An empty directory is replaced by every rename; where one that is not appears meanwhile, plain rename(2) fails.
  int why = EEXIST;
  if (!taken) {
    why = io::rename_with(path, target, RENAME_NOREPLACE);
    if (why == EINVAL || why == ENOSYS) why = io::rename(path, target);
    if (why == 0) {
      there = false;
      why = io::sync_directory(dir);
    }
  }
  if (why == EEXIST || why == ENOTEMPTY) why = replace(target);
  const bool named = !there || why == 0;
  if (named) made_dir = false;
  if (named && why != 0) return io::failure(Errc::io, "is saved, but may not outlive a power failure", why, target);
  if (why != 0) return io::failure(Errc::cannot_create, "the checkpoint cannot be given its name", why, target);
  if (there) {
    static_cast<void>(io::remove_directory(path));
    there = false;
  }
  at_stop = {};
  return {};
}

Result<void> Draft::State::move_files() {
  const stop::NotNow hold;
  const auto move = [&](const std::string& name) -> Result<void> {
    if (const int why = io::rename(path / name, dir / name); why != 0)
      return io::failure(Errc::cannot_create, "the file cannot be given its name", why, dir / name);
    made_dir = false;
    return {};
  };
  if (files.size() > 1)
    if (const int why = io::remove_file(dir / kIndexFile); why != 0 && why != ENOENT)
      return io::failure(Errc::cannot_create, "an older index cannot be removed", why, dir / kIndexFile);
  for (const Layout::File& file : files)
    if (Result<void> moved = move(file.name); !moved) return moved;
  for (auto file = small.rbegin(); file != small.rend(); ++file)  // the index is the first
    if (Result<void> moved = move(file->name); !moved) return moved;
  static_cast<void>(io::remove_directory(path));
  there = false;
  at_stop = {};
  if (const int why = io::sync_directory(dir); why != 0)
    return io::failure(Errc::io, "is saved, but may not outlive a power failure", why, dir);
  return {};
}

Draft::Draft(std::unique_ptr<State> state) : state_(std::move(state)) {}
Draft::Draft(Draft&&) noexcept = default;
Draft& Draft::operator=(Draft&&) noexcept = default;
Draft::~Draft() = default;

Result<Draft> Draft::create(const fs::path& dir, std::int64_t step, const Layout& layout,
                            std::vector<SmallFile> small) {
  auto state = std::make_unique<State>();
  state->dir = without_slash(dir);
  state->step = step;
  state->files = layout.files;
  if (!layout.index.empty()) small.insert(small.begin(), SmallFile{kIndexFile, layout.index});
  state->small = std::move(small);
  if (Result<void> made = state->make_directories(); !made) return made.error();
  for (const Layout::File& file : state->files)
    if (Result<void> made = state->make_file(file.name, file.head, file.bytes); !made) return made.error();
  for (const SmallFile& file : state->small) {
    assert(is_file_name(file.name) && file.name != kManifestFile);
    const auto bytes = static_cast<std::int64_t>(file.text.size());
    if (Result<void> made = state->make_file(file.name, file.text, bytes); !made) return made.error();
  }
  return Draft(std::move(state));
}

const fs::path& Draft::path() const {
  return state_->path;
}

fs::path Draft::name() const {
  return state_->dir / step_name(state_->step);
}

Result<void> Draft::check(Manifest& manifest) {
  const State& s = *state_;
  if (Result<void> filled = s.fill(manifest); !filled) return filled;
  for (const Layout::File& file : s.files)
    if (Result<void> settled = s.settle(file.name, file.head); !settled) return settled;
  for (const SmallFile& file : s.small)
    if (Result<void> settled = s.settle(file.name, file.text); !settled) return settled;
  return {};
}

Result<void> Draft::commit(Manifest manifest) {
  State& s = *state_;
  if (Result<void> checked = check(manifest); !checked) return checked;
  const std::string text = to_text(manifest);
  if (Result<void> made = s.make_file(kManifestFile, text, static_cast<std::int64_t>(text.size())); !made) return made;
  if (Result<void> settled = s.settle(kManifestFile, text); !settled) return settled;
  if (const int why = io::sync_directory(s.path); why != 0)
    return io::failure(Errc::io, "what was written does not reach the disk", why, s.path);
  return s.give_name();
}

Result<void> Draft::move_into_folder() {
  return state_->move_files();
}

}  // namespace shard::checkpoint
