// Reads and writes messages of JSON-RPC.
#include "sim/mcp/json_rpc.h"

#include <utility>

namespace shard::mcp {
namespace {

/// A batch and a call's arguments are far shallower; what is deeper is not kept.
constexpr int kMostDepth = 64;

bool is_id(const Json& value) {
  return value.is_string() || value.is_number_integer();
}

Incoming read_message(Json value) {
  if (!value.is_object()) return Fault{FaultCode::invalid_request, "a message is an object"};
  const auto id = value.find("id");
  const bool has_id = id != value.end() && is_id(*id);
  const Json known = has_id ? *id : Json();
  const auto version = value.find("jsonrpc");
  if (version == value.end() || *version != "2.0")
    return Fault{FaultCode::invalid_request, R"("jsonrpc" is to be "2.0")", known};
  const auto method = value.find("method");
  if (method == value.end() && has_id && (value.contains("result") || value.contains("error"))) return Response{};
  if (method == value.end() || !method->is_string())
    return Fault{FaultCode::invalid_request, R"("method" is to be text)", known};
  if (id != value.end() && !has_id)
    return Fault{FaultCode::invalid_request, R"("id" is to be text or a whole number)", known};
  Message message{.id = known, .method = method->get<std::string>()};
  if (const auto params = value.find("params"); params != value.end() && !params->is_null()) {
    if (!params->is_object()) return Fault{FaultCode::invalid_params, R"("params" is to be an object)", known};
    message.params = std::move(*params);
  }
  return message;
}

}  // namespace

Line read_line(std::string_view text) {
  bool too_deep = false;
  const Json::parser_callback_t keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMostDepth;
    return depth <= kMostDepth;
  };
  Json value = Json::parse(text, keep, false);
  if (value.is_discarded() || too_deep)
    return {.messages = {Fault{FaultCode::parse_error, "a line is to be one message in JSON"}}};
  if (!value.is_array()) return {.messages = {read_message(std::move(value))}};
  if (value.empty() || value.size() > kMostInBatch)
    return {.messages = {
                Fault{FaultCode::invalid_request, "a batch has 1 to " + std::to_string(kMostInBatch) + " messages"}}};
  Line line{.is_batch = true, .messages = {}};
  for (Json& each : value) line.messages.push_back(read_message(std::move(each)));
  return line;
}

Json result_of(const Json& id, Json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

Json error_of(const Fault& fault) {
  return {{"jsonrpc", "2.0"},
          {"id", fault.id},
          {"error", {{"code", static_cast<int>(fault.code)}, {"message", fault.message}}}};
}

std::string line_of(const Json& message) {
  return message.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace shard::mcp
