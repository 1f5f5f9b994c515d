// Does docs/configurations.md say of every key what the readers' tables say?
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/foreign/reading.h"
#include "sim/foreign/tools.h"

namespace shard::foreign {
namespace {

const std::filesystem::path kDocument = std::filesystem::path(TEST_DATA).parent_path() / "docs" / "configurations.md";

/// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string table_of(const Tool& tool) {
  std::string taken = "| key | becomes | |\n|---|---|---|\n", left = "| key | left out because |\n|---|---|\n";
  for (const Row& row : tool.rows()) {
    const std::string key = "`" + std::string(row.key) + "`";
    if (row.take == nullptr)
      left += "| " + key + " | " + cell(row.says) + " |\n";
    else
      taken += "| " + key + " | " + (row.option.empty() ? "" : "`--" + std::string(row.option) + "`") + " | " +
               cell(row.says) + " |\n";
  }
  return "\n" + taken + "\n" + left + "\n";
}

/// The part of a document between the lines that mark it.
struct Part {
  std::size_t begin, end;
};
Part part_of(const std::string& text, const Tool& tool) {
  const std::string name(tool.option);
  const std::string open = "<!-- table of --" + name + " -->\n", close = "<!-- end of --" + name + " -->\n";
  const std::size_t at = text.find(open);
  if (at == std::string::npos) return {0, 0};
  return {at + open.size(), std::min(text.find(close), text.size())};
}

TEST(Configurations, TheDocumentHasEveryTable) {
  std::string text;
  {
    std::ifstream in(kDocument);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (const Tool& tool : tools()) {
    if (tool.rows == nullptr) continue;
    Part part = part_of(text, tool);
    ASSERT_GT(part.begin, 0u) << "no place for --" << tool.option;
    if (std::getenv("SHARDSCOPE_UPDATE_GOLDEN") != nullptr) {
      text.replace(part.begin, part.end - part.begin, table_of(tool));
      std::ofstream(kDocument) << text;
      part = part_of(text, tool);
    }
    EXPECT_EQ(text.substr(part.begin, part.end - part.begin), table_of(tool)) << "--" << tool.option;
  }
}

}  // namespace
}  // namespace shard::foreign
