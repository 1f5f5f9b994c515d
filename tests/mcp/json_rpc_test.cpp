// Is each line read as the message that it is, and refused with the code of JSON-RPC that says why?
#include "sim/mcp/json_rpc.h"

#include <gtest/gtest.h>

#include "sim/mcp/server.h"

namespace shard::mcp {
namespace {

const Message& message_of(const Line& line) {
  static const Message kNone;
  EXPECT_EQ(line.messages.size(), 1u);
  const auto* const message = std::get_if<Message>(&line.messages.front());
  EXPECT_NE(message, nullptr);
  return message == nullptr ? kNone : *message;
}

TEST(JsonRpc, ReadsRequestsAndNotifications) {
  const Line request = read_line(R"({"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":1}})");
  EXPECT_EQ(message_of(request).id, "a");
  EXPECT_EQ(message_of(request).method, "ping");
  EXPECT_EQ(message_of(request).params["x"], 1);
  EXPECT_TRUE(message_of(read_line(R"({"jsonrpc":"2.0","method":"notifications/initialized"})")).id.is_null());
  EXPECT_TRUE(message_of(read_line(R"({"jsonrpc":"2.0","id":0,"method":"ping"})")).params.is_object());
  EXPECT_EQ(message_of(read_line(R"({"jsonrpc":"2.0","id":0,"method":"ping"})")).id, 0);
}

TEST(JsonRpc, PassesOverAnswers) {
  const Line line = read_line(R"({"jsonrpc":"2.0","id":3,"result":{}})");
  EXPECT_TRUE(std::holds_alternative<Response>(line.messages.at(0)));
}

TEST(JsonRpc, SaysWhyALineIsRefused) {
  const std::string deep = std::string(100'000, '[');
  const std::string deep_and_whole = std::string(200, '[') + std::string(200, ']');
  for (const auto& [text, code] : std::vector<std::pair<std::string, FaultCode>>{
           {"", FaultCode::parse_error},
           {"{", FaultCode::parse_error},
           {"\xff\xfe", FaultCode::parse_error},
           {"{\"id\":\"\xff\"}", FaultCode::parse_error},
           {deep, FaultCode::parse_error},
           {deep_and_whole, FaultCode::parse_error},
           {"3", FaultCode::invalid_request},
           {"[]", FaultCode::invalid_request},
           {"{}", FaultCode::invalid_request},
           {R"({"id":1,"method":"ping"})", FaultCode::invalid_request},
           {R"({"jsonrpc":"1.0","id":1,"method":"ping"})", FaultCode::invalid_request},
           {R"({"jsonrpc":"2.0","id":1})", FaultCode::invalid_request},
           {R"({"jsonrpc":"2.0","id":1,"method":7})", FaultCode::invalid_request},
           {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", FaultCode::invalid_request},
           {R"({"jsonrpc":"2.0","id":[1],"method":"ping"})", FaultCode::invalid_request},
           {R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})", FaultCode::invalid_params}}) {
    const Line line = read_line(text);
    ASSERT_EQ(line.messages.size(), 1u);
    const auto* const fault = std::get_if<Fault>(&line.messages.front());
    ASSERT_NE(fault, nullptr) << text.substr(0, 80);
    EXPECT_EQ(fault->code, code) << text.substr(0, 80);
  }
  EXPECT_EQ(std::get<Fault>(read_line(R"({"jsonrpc":"1.0","id":9,"method":"ping"})").messages.at(0)).id, 9);
}

TEST(JsonRpc, ReadsABatchMessageByMessage) {
  const Line line = read_line(R"([{"jsonrpc":"2.0","id":1,"method":"ping"},5])");
  EXPECT_TRUE(line.is_batch);
  ASSERT_EQ(line.messages.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Message>(line.messages[0]));
  EXPECT_TRUE(std::holds_alternative<Fault>(line.messages[1]));
  std::string many = "[1";
  for (std::size_t i = 0; i < kMostInBatch; ++i) many += ",1";
  EXPECT_EQ(read_line(many + "]").messages.size(), 1u);
}

TEST(JsonRpc, WritesALineWhateverIsInIt) {
  const std::string line = line_of(result_of(1, {{"text", "two\nlines\x7f \xc3\xa9 \xff"}}));
  EXPECT_TRUE(std::ranges::all_of(line, [](char c) { return c >= ' ' && c < '\x7f'; })) << line;
  EXPECT_EQ(Json::parse(line)["result"]["text"], "two\nlines\x7f \xc3\xa9 \xef\xbf\xbd");
}

TEST(Versions, AreTheClientsWhereTheyAreKnown) {
  for (const char* const known : {"2024-11-05", "2025-03-26", "2025-06-18"}) EXPECT_EQ(spoken_version(known), known);
  for (const char* const other : {"2099-01-01", "2024-01-01", ""}) EXPECT_EQ(spoken_version(other), "2025-06-18");
}

}  // namespace
}  // namespace shard::mcp
