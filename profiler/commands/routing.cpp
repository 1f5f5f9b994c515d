// What a list of shares must be: numbers, none below zero, one above.
#include "profiler/commands/routing.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "traces/base/read_file.h"

namespace shard::dryrun {
namespace {

constexpr Bytes kLongestList{std::int64_t{1} << 20};
constexpr std::string_view kZipf = "zipf:";

bool is_share(const nlohmann::json& value) {
  return value.is_number() && value.get<double>() >= 0;
}

Result<std::string> shares_of(const std::string& path) {
  const Result<std::string> text = read_file(path, "the experts' shares of tokens", kLongestList);
  if (!text) return text.error();
  const nlohmann::json list = nlohmann::json::parse(*text, nullptr, false);
  if (!list.is_array() || !std::ranges::all_of(list, is_share) ||
      std::ranges::none_of(list, [](const nlohmann::json& value) { return value.get<double>() > 0; }))
    return Error{Errc::malformed, "this is no JSON list of shares, numbers of which one is above zero", path,
                 "[4, 2, 1, 1], say: the first expert gets half of the tokens"};
  return list.dump();
}

}  // namespace

Result<std::string> read_routing(const std::string& said) {
  if (said == "balanced" || said == "one-expert") return said;
  if (said.starts_with(kZipf)) {
    double exponent = -1;
    const char* const end = said.data() + said.size();
    const auto [stopped, error] = std::from_chars(said.data() + kZipf.size(), end, exponent);
    if (error == std::errc() && stopped == end && exponent >= 0 && exponent <= 100) return said;
    return Error{Errc::usage, "'" + said + "' has no exponent from 0 to 100", "--routing", "zipf:1.2"};
  }
  std::error_code error;
  if (!std::filesystem::exists(said, error))
    return Error{Errc::usage, "'" + said + "' is no routing and no file", "--routing",
                 "balanced, zipf:1.2, one-expert, or a file with a JSON list of shares"};
  return shares_of(said);
}

std::string name_of_routing(std::string_view routing) {
  return routing.starts_with('[') ? "given" : std::string(routing);
}

}  // namespace shard::dryrun
