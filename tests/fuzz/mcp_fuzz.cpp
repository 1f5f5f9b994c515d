// Fuzz target: no line makes the server's reader crash; what it reads as a call becomes words or an error, and every
// answer is one line of ASCII.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/mcp/json_rpc.h"
#include "sim/mcp/tools.h"
#include "tests/fuzz/limits.h"

namespace {

using namespace shard;

void require(bool condition) {
  if (!condition) std::abort();
}

const cli::CommandDescription& probe() {
  static const cli::CommandDescription kProbe{
      .name = "probe",
      .followed_by = "-- PROGRAM",
      .positionals = {{.name = "FILE", .value_name = "FILE", .several = true}},
      .groups = {{.title = "",
                  .options = {{.name = "stage", .value_name = "0..3", .kind = "integer"},
                              {.name = "deep", .kind = "flag", .negatable = true},
                              {.name = "list", .value_name = "N", .list_separator = ","}}}}};
  return kProbe;
}

void check_line(const mcp::Json& answer) {
  const std::string line = mcp::line_of(answer);
  require(std::ranges::all_of(line, [](char c) { return c >= ' ' && c < '\x7f'; }));
}

void check(const mcp::Message& message) {
  require(message.id.is_null() || message.id.is_string() || message.id.is_number_integer());
  require(message.params.is_object());
  check_line(mcp::result_of(message.id, mcp::Json::object()));
  const auto arguments = message.params.find("arguments");
  if (arguments == message.params.end() || !arguments->is_object()) return;
  const Result<std::vector<std::string>> words = mcp::words_of(probe(), *arguments);
  if (!words) {
    require(!words.error().what.empty());
    check_line(mcp::answer_of(words.error()));
    return;
  }
  require(words->size() >= 2 && words->front() == "probe");
  for (const std::string& word : *words) require(word.find('\0') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Limits limits(size);
  for (const mcp::Incoming& each : mcp::read_line({reinterpret_cast<const char*>(data), size}).messages) {
    if (const auto* const message = std::get_if<mcp::Message>(&each)) check(*message);
    if (const auto* const fault = std::get_if<mcp::Fault>(&each)) check_line(mcp::error_of(*fault));
  }
  return 0;
}
