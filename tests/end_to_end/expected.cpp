// Normalised output and its comparison with a file.
#include "tests/end_to_end/expected.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

std::string without_volatile(const std::string& line) {
  static const std::vector<std::pair<std::regex, std::string>> kRules{
      {std::regex(R"(loss [0-9]+\.[0-9]+( at the first step, )[0-9.]+)"), "loss <loss>$1<loss>"},
      {std::regex(R"(loss [0-9]+\.[0-9]+)"), "loss <loss>"},
      {std::regex(R"([0-9.,]+ tokens/s)"), "<rate> tokens/s"},
      {std::regex(R"([0-9.,]+ (TFLOP[^ ,]*))"), "<rate> $1"},
      {std::regex(R"(([0-9]+ (h|min) )?\b[0-9.]+ (ns|us|ms|s|min)\b)"), "<time>"},
      {std::regex(R"(<time> \([0-9.,]+ to [0-9.,]+\))"), "<time> (<low> to <high>)"},
      {std::regex(R"(\b[0-9.]+x)"), "<ratio>"},
      {std::regex(R"(^(resident .*measured) [0-9.]+ [KMG]iB)"), "$1 <memory>"},
      {std::regex(R"(^numerics +[a-z0-9]+ \(.*\))"), "numerics <instruction set> (<library>)"},
      {std::regex(R"((, computed with )[a-z0-9]+$)"), "$1<instruction set>"},
      {std::regex(R"( +)"), " "},
      {std::regex(R"( +$)"), ""},
  };
  std::string text = line;
  for (const auto& [what, by] : kRules) text = std::regex_replace(text, what, by);
  return text;
}

/// Replaces each run of 32 or 64 hexadecimal digits.
std::string number_digests(const std::string& line, std::map<std::string, std::string>& known) {
  static const std::regex kDigest(R"(\b([0-9a-f]{64}|[0-9a-f]{32})\b)");
  std::string text;
  auto rest = line.cbegin();
  for (std::smatch match; std::regex_search(rest, line.cend(), match, kDigest); rest = match.suffix().first) {
    text += match.prefix();
    text += known.emplace(match.str(), "<digest " + std::to_string(known.size() + 1) + ">").first->second;
  }
  return text + std::string(rest, line.cend());
}

}  // namespace

std::string normalised(std::string text, const std::vector<std::pair<std::string, std::string>>& names) {
  for (const auto& [what, by] : names)
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
      text.replace(at, what.size(), by);
  std::istringstream in(text);
  std::string result;
  std::map<std::string, std::string> digests;
  bool in_ops = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) in_ops = false;
    if (line.starts_with("op ") && line.find("ratio") != std::string::npos) in_ops = true;
    if (!in_ops) result += number_digests(without_volatile(line), digests) + '\n';
  }
  return result;
}

void expect_file(const std::string& path, const std::string& actual) {
  if (std::getenv("SHARDSCOPE_UPDATE_EXPECTED") != nullptr) {
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  EXPECT_EQ(actual, read_file(path)) << path << ": SHARDSCOPE_UPDATE_EXPECTED=1 writes it anew";
}

}  // namespace shard::test
