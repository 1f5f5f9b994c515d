// JSON-RPC 2.0 as the Model Context Protocol has it: a line is one message, or of one old version a batch of them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shard::mcp {

using Json = nlohmann::ordered_json;

/// The codes of JSON-RPC 2.0.
enum class FaultCode : int {
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
};

/// What a request is answered with that is not served.
struct Fault {
  FaultCode code = FaultCode::internal_error;
  std::string message;
  Json id{};  ///< of the request; null where it is not known
};

/// What a peer asks for or tells.
struct Message {
  Json id{};  ///< text or a whole number; null of a notification, which is not answered
  std::string method{};
  Json params = Json::object();
};

/// An answer to a request of ours: we make none, and pass over it.
struct Response {};

using Incoming = std::variant<Message, Response, Fault>;

struct Line {
  bool is_batch = false;  ///< its answers are one line, too
  std::vector<Incoming> messages;
};

/// More in one batch is not served.
inline constexpr std::size_t kMostInBatch = 100;

/// Whatever the text is: what is wrong with it is a Fault.
[[nodiscard]] Line read_line(std::string_view text);

[[nodiscard]] Json result_of(const Json& id, Json result);
[[nodiscard]] Json error_of(const Fault& fault);

/// One line without its end, in ASCII.
[[nodiscard]] std::string line_of(const Json& message);

}  // namespace shard::mcp
