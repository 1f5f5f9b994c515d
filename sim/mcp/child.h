// A command in a process of its own, whose output is read while others run.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "sim/mcp/tools.h"
#include "traces/base/result.h"

namespace shard::mcp {

/// Ended with its object.
class Child {
 public:
  /// Errc::unavailable where it cannot be started. Its input is empty.
  [[nodiscard]] static Result<Child> start(const std::string& program, const std::vector<std::string>& arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// What to wait for until read(); entries without a file where it has closed one.
  [[nodiscard]] std::array<pollfd, 2> awaited() const;
  /// Reads what is there, without waiting where poll() says so. False when nothing more comes.
  [[nodiscard]] bool read(const std::array<pollfd, 2>& ready);
  /// Waits for its end; call it when read() has said false.
  [[nodiscard]] Finished finish();
  /// Asks it to end, which it does with what it started.
  void cancel() const;

 private:
  Child() = default;
  void close_files();

  pid_t process_ = -1;
  std::array<int, 2> files_{-1, -1};
  std::array<std::string, 2> texts_;
};

/// Asks all children of this process to end, and ends those that do not. Any thread may call it.
void end_children_of_server();

}  // namespace shard::mcp
