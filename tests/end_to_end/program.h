// Runs programs as a user would: arguments, a directory, what they print, how they end.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shard::test {

using Words = std::vector<std::string>;

struct Outcome {
  int exit_code = -1;  ///< -1: ended by `signal`
  int signal = 0;
  std::string out;
  std::string err;
};

/// Where and with which variables, beside this process's own, a program runs.
struct Surroundings {
  std::filesystem::path directory = {};
  std::map<std::string, std::string> environment = {};
};

/// A running program in a process group of its own. What it prints is read by wait() and read_line() only.
class Program {
 public:
  explicit Program(const Words& command, const Surroundings& place = {});
  ~Program();  ///< kills what still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Reads until stdout holds a line that begins so; false when stdout ends before.
  [[nodiscard]] bool read_line(const std::string& beginning);
  /// Reads to the end.
  [[nodiscard]] Outcome wait();
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  bool read_some();

  pid_t process_ = -1;
  int out_ = -1;
  int err_ = -1;
  Outcome outcome_;
};

/// Runs a command to its end.
[[nodiscard]] Outcome run(const Words& command, const Surroundings& place = {});
/// The same for `shardscope ARGUMENTS...` of this build.
[[nodiscard]] Outcome shardscope(const Words& arguments, const Surroundings& place = {});
/// For a command that begins with mpirun: that asks for no network and no batch system, and what it started is stopped
/// at once where one of it fails. A second of each run.
[[nodiscard]] Surroundings under_mpirun_here();
/// Its path, and the directory of this build's programs.
[[nodiscard]] std::string shardscope_path();
[[nodiscard]] std::string programs_directory();

/// stdout as one JSON object; a failure and an empty object when it is not, or the exit code differs.
[[nodiscard]] nlohmann::json json_of(const Outcome& outcome, int exit_code = 0);

/// An empty directory that is gone afterwards.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::filesystem::path& in = std::filesystem::temp_directory_path());
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& content) const;
  /// Names of all in it, sorted.
  [[nodiscard]] Words list() const;

 private:
  std::filesystem::path path_;
};

/// "" when there is none.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);
/// Processes of this machine that were started with this variable, as NAME=VALUE.
[[nodiscard]] std::vector<pid_t> processes_with(const std::string& variable);

/// Text that every Debian has.
inline constexpr const char* kText = "text:/usr/share/common-licenses/GPL-3";

}  // namespace shard::test
