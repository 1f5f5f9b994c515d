// The files of this process that must not outlive it unfinished, so that whatever ends it can remove them.
#pragma once

#include <string>

/// One registry per process. All functions may be called from any thread, also while others create files, and none
/// throws. They lock: not for signal handlers. A thread that takes signals (sigwait, signalfd) may call remove_all().
///
/// Names are kept as they are given: a process that changes its working directory registers absolute ones. A forked
/// child that does not exec shares the names and should not call remove_all().
namespace shard::temporary_files {

/// Creates a file that does not exist yet (O_EXCL, close-on-exec, mode 0666 less the umask), for reading and writing,
/// and registers it, so that remove_all() never misses it. A descriptor, or -1 and errno: as open(2), or ECANCELED
/// after remove_all(), since the process is ending.
[[nodiscard]] int create(const std::string& path) noexcept;

/// Registers a file that another process of the same run creates, and that this one is to remove.
void adopt(const std::string& path) noexcept;

/// Renames a registered file to what it is called when finished, replacing what is there, and forgets it. 0, or -1 and
/// errno: as rename(2), or ECANCELED after remove_all(); then it is still registered.
[[nodiscard]] int finish(const std::string& path, const std::string& name) noexcept;

/// Gives a file without a name (O_TMPFILE) its name. Where another file has that, it is replaced, and `path`, which
/// must not exist, is the name in between: all that a process that is killed between the two calls leaves. 0, or -1 and
/// errno: as linkat(2) and rename(2), or ECANCELED after remove_all().
[[nodiscard]] int finish_unnamed(int fd, const std::string& path, const std::string& name) noexcept;

/// Forgets a file that stays where it is.
void keep(const std::string& path) noexcept;

/// Removes a registered file, if it is there, and forgets it.
void remove(const std::string& path) noexcept;

/// Removes all registered files. Afterwards create() and finish() fail: nothing appears between this call and the end
/// of the process.
void remove_all() noexcept;

}  // namespace shard::temporary_files
