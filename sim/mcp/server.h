// The server of the Model Context Protocol: messages in, commands run, answers out.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/mcp/child.h"
#include "sim/mcp/json_rpc.h"
#include "sim/mcp/tools.h"

namespace shard::mcp {

/// The version of the protocol that is spoken with a client that knows this one.
[[nodiscard]] std::string_view spoken_version(std::string_view asked);

class Server {
 public:
  /// `program` runs the commands, `version` is its; `write` takes lines without their ends.
  Server(std::string program, std::string version, std::function<void(const std::string&)> write);

  /// Whatever the text is. A call that is served starts a process and is answered by later reads.
  void take(std::string_view line);
  /// For a line that is longer than any that is read.
  void refuse_line();

  /// What to wait for; `ready` of read() is the same list after poll().
  [[nodiscard]] std::vector<pollfd> awaited() const;
  void read(std::span<const pollfd> ready);
  [[nodiscard]] bool is_idle() const { return calls_.empty(); }

 private:
  /// Where answers are gathered that are one line together.
  struct Batch {
    std::size_t open = 0;
    Json answers = Json::array();
  };
  using BatchOf = std::shared_ptr<Batch>;  ///< null: an answer is a line
  struct Call {
    Json id;
    Child child;
    BatchOf batch;
    bool is_cancelled = false;  ///< ends, and is not answered
  };

  void take(const Message& message, const BatchOf& batch);
  void call(const Message& message, const BatchOf& batch);
  void cancel(const Message& message);
  void answer(Json answer, const BatchOf& batch);
  void close(const BatchOf& batch);
  [[nodiscard]] Result<Json> tools();
  [[nodiscard]] Result<const cli::CommandDescription*> described(const std::string& name);

  std::string program_;
  std::string version_;
  std::function<void(const std::string&)> write_;
  std::map<std::string, cli::CommandDescription> descriptions_;  ///< asked for when they are needed
  std::list<Call> calls_;
};

/// Serves what comes in on stdin until it ends and all is answered, or nobody reads stdout any more. For main() only.
void serve(Server& server);

}  // namespace shard::mcp
