// Methods of the protocol, and the loop that serves them.
#include "sim/mcp/server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "traces/base/stop.h"

namespace shard::mcp {
namespace {

/// The oldest first.
constexpr std::array<std::string_view, 3> kVersions{"2024-11-05", "2025-03-26", "2025-06-18"};
/// Calls are the size of command lines.
constexpr std::size_t kMostLine = std::size_t{4} << 20;
/// More commands do not run at once: each may take all of a processor's cores.
constexpr std::size_t kMostCalls = 8;

constexpr const char* kInstructions =
    "Predicts memory and time of training large models, before it runs. simulate: one strategy (does it fit, what "
    "would help); sweep: many; dryrun: what a PyTorch program itself takes, on a GPU that need not be there; search: "
    "chunk sizes; inspect: what is in a trace, a memory snapshot or a model; compare: two traces or strategies; "
    "validate: predictions beside published runs. Sizes in answers are integers with the unit in the key.";

std::string text_at(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

/// Takes the lines that are whole; what is too long for one is skipped to its end.
class Lines {
 public:
  explicit Lines(Server& server) : server_(&server) {}

  void add(std::string_view text) {
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      add_part(text.substr(0, end));
      finish();
    }
    add_part(text);
  }
  /// The input's last line may lack its end.
  void finish() {
    if (too_long_)
      server_->refuse_line();
    else if (line_.find_first_not_of(" \t\r") != std::string::npos)
      server_->take(line_);
    line_.clear();
    too_long_ = false;
  }

 private:
  void add_part(std::string_view part) {
    too_long_ = too_long_ || line_.size() + part.size() > kMostLine;
    if (!too_long_) line_.append(part);
  }

  Server* server_;
  std::string line_;
  bool too_long_ = false;
};

}  // namespace

std::string_view spoken_version(std::string_view asked) {
  const auto known = std::ranges::find(kVersions, asked);
  return known == kVersions.end() ? kVersions.back() : *known;
}

Server::Server(std::string program, std::string version, std::function<void(const std::string&)> write)
    : program_(std::move(program)), version_(std::move(version)), write_(std::move(write)) {}

void Server::refuse_line() {
  write_(line_of(error_of({FaultCode::invalid_request, "a message has at most 4 MiB"})));
}

void Server::take(std::string_view text) {
  Line line = read_line(text);
  const BatchOf batch = line.is_batch ? std::make_shared<Batch>() : nullptr;
  if (batch) batch->open = 1;  // while messages are added
  for (const Incoming& each : line.messages) {
    if (const auto* const fault = std::get_if<Fault>(&each)) {
      if (batch) ++batch->open;
      answer(error_of(*fault), batch);
    } else if (const auto* const message = std::get_if<Message>(&each)) {
      take(*message, batch);
    }
  }
  close(batch);
}

void Server::answer(Json answer, const BatchOf& batch) {
  if (!batch) return write_(line_of(answer));
  batch->answers.push_back(std::move(answer));
  close(batch);
}

void Server::close(const BatchOf& batch) {
  if (batch && --batch->open == 0 && !batch->answers.empty()) write_(line_of(batch->answers));
}

void Server::take(const Message& message, const BatchOf& batch) {
  if (message.id.is_null()) {  // of notifications only this one asks for something
    if (message.method == "notifications/cancelled") cancel(message);
    return;
  }
  if (batch) ++batch->open;
  if (message.method == "tools/call") return call(message, batch);
  if (message.method == "ping") return answer(result_of(message.id, Json::object()), batch);
  if (message.method == "tools/list") {
    const Result<Json> list = tools();
    return answer(list ? result_of(message.id, {{"tools", *list}})
                       : error_of({FaultCode::internal_error, to_string(list.error()), message.id}),
                  batch);
  }
  if (message.method != "initialize")
    return answer(
        error_of({FaultCode::method_not_found, "'" + message.method + "' is not served: tools are", message.id}),
        batch);
  answer(result_of(message.id, {{"protocolVersion", spoken_version(text_at(message.params, "protocolVersion"))},
                                {"capabilities", {{"tools", Json::object()}}},
                                {"serverInfo", {{"name", "shardscope"}, {"version", version_}}},
                                {"instructions", kInstructions}}),
         batch);
}

void Server::call(const Message& message, const BatchOf& batch) {
  const auto refuse = [&](const std::string& why) {
    answer(error_of({FaultCode::invalid_params, why, message.id}), batch);
  };
  const std::string name = text_at(message.params, "name");
  if (std::ranges::find(offered_commands(), name) == offered_commands().end())
    return refuse("'" + name + "' is no tool: tools/list names them");
  const auto given = message.params.find("arguments");
  const Json arguments = given == message.params.end() || given->is_null() ? Json::object() : *given;
  if (!arguments.is_object()) return refuse(R"("arguments" is to be an object)");
  if (std::ranges::any_of(calls_, [&](const Call& each) { return each.id == message.id; }))
    return refuse("a call with this id is not answered yet");
  const auto failed = [&](const Error& error) { answer(result_of(message.id, answer_of(error)), batch); };
  if (calls_.size() >= kMostCalls)
    return failed({Errc::retryable, "8 calls are running", "", "wait for an answer, then call again"});
  const Result<const cli::CommandDescription*> command = described(name);
  if (!command) return failed(command.error());
  const Result<std::vector<std::string>> words = words_of(**command, arguments);
  if (!words) return failed(words.error());
  const stop::NotNow hold;  // a signal ends what was started before it
  Result<Child> child = Child::start(program_, *words);
  if (!child) return failed(child.error());
  calls_.push_back({.id = message.id, .child = std::move(*child), .batch = batch});
}

void Server::cancel(const Message& message) {
  const auto id = message.params.find("requestId");
  if (id == message.params.end()) return;
  const auto found = std::ranges::find_if(calls_, [&](const Call& each) { return each.id == *id; });
  if (found == calls_.end()) return;
  found->is_cancelled = true;
  found->child.cancel();
}

Result<const cli::CommandDescription*> Server::described(const std::string& name) {
  if (const auto known = descriptions_.find(name); known != descriptions_.end()) return &known->second;
  Result<cli::CommandDescription> asked = cli::describe_command(program_, name);
  if (!asked) return asked.error();
  return &descriptions_.emplace(name, std::move(*asked)).first->second;
}

Result<Json> Server::tools() {
  Json list = Json::array();
  for (const std::string_view name : offered_commands()) {
    const Result<const cli::CommandDescription*> command = described(std::string(name));
    if (command)
      list.push_back(tool_of(**command));
    else if (command.error().code != Errc::unavailable)  // one that is not built is not offered
      return command.error();
  }
  return list;
}

std::vector<pollfd> Server::awaited() const {
  std::vector<pollfd> all;
  for (const Call& each : calls_)
    for (const pollfd& file : each.child.awaited()) all.push_back(file);
  return all;
}

void Server::read(std::span<const pollfd> ready) {
  for (auto each = calls_.begin(); each != calls_.end() && ready.size() >= 2; ready = ready.subspan(2)) {
    if (each->child.read({ready[0], ready[1]})) {
      ++each;
      continue;
    }
    const Finished finished = each->child.finish();
    if (each->is_cancelled)
      close(each->batch);
    else
      answer(result_of(each->id, answer_of(finished)), each->batch);
    each = calls_.erase(each);
  }
}

void serve(Server& server) {
  const stop::Registration ended = stop::at_stop(end_children_of_server);
  Lines lines(server);
  bool is_open = true;
  while (is_open || !server.is_idle()) {
    std::vector<pollfd> files = server.awaited();
    const std::size_t of_calls = files.size();
    files.push_back({is_open ? STDIN_FILENO : -1, POLLIN, 0});
    files.push_back({STDOUT_FILENO, 0, 0});
    if (::poll(files.data(), files.size(), -1) < 0) continue;  // EINTR
    if ((files[of_calls + 1].revents & (POLLERR | POLLNVAL)) != 0) return end_children_of_server();
    server.read(std::span(files).first(of_calls));
    if (files[of_calls].revents == 0) continue;
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count > 0) {
      lines.add({buffer.data(), static_cast<std::size_t>(count)});
    } else {
      is_open = false;
      lines.finish();
    }
  }
}

}  // namespace shard::mcp
