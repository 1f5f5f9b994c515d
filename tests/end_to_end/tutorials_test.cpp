// Do the commands of docs/tutorials run, and do they print the lines that stand beneath them?
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/end_to_end/command_lines.h"
#include "tests/end_to_end/expected.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = fs::path(TEST_DATA).parent_path();

using Lines = std::vector<std::string>;

/// Without blanks at their ends.
Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  }
  return lines;
}

/// What runs and what is said of it: the lines of a page from `begin` to `end`, of which those from `said` on are
/// output.
struct Shown {
  std::size_t begin = 0, said = 0, end = 0;
  std::string command;
};

/// Lines "$ COMMAND" inside fences with what follows until the next or the fence's end; "..." stands for lines left
/// out.
std::vector<Shown> shown_in(const Lines& page) {
  std::vector<Shown> all;
  bool fenced = false;
  for (std::size_t i = 0; i < page.size(); ++i) {
    const bool ends = page[i].starts_with("```");
    const bool begins = fenced && page[i].starts_with("$ ");
    if (!all.empty() && all.back().end == 0 && (ends || begins)) all.back().end = i;
    if (ends) fenced = !fenced;
    if (!begins) continue;
    Shown shown{.begin = i, .said = 0, .end = 0, .command = page[i].substr(2)};
    while (shown.command.ends_with('\\')) {
      shown.command.pop_back();
      shown.command += page[++i];
    }
    shown.said = i + 1;
    all.push_back(std::move(shown));
  }
  return all;
}

/// Files that a page has in a fence "```python NAME".
void write_files(const Lines& page, const ScratchDirectory& directory) {
  for (std::size_t i = 0; i < page.size(); ++i) {
    const std::string fence = "```python ";
    if (!page[i].starts_with(fence)) continue;
    const std::string name = page[i].substr(fence.size());
    std::string content;
    for (++i; i < page.size() && page[i] != "```"; ++i) content += page[i] + "\n";
    directory.write(name, content);
  }
}

/// A line without its numbers: for finding the line that took its place.
std::string without_numbers(const std::string& line) {
  std::string text;
  for (const char c : line)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) text += c;
  return text;
}

/// Whatever was measured has a name in place of its value.
Lines comparable(const std::string& text, bool measured) {
  return lines_of(measured ? normalised(text) : text);
}

class Tutorial : public testing::TestWithParam<std::string> {};

/// Each line shown is printed, whole, and behind the one shown before it. SHARDSCOPE_UPDATE_EXPECTED=1 puts what is
/// printed now in the place of lines that differ in numbers alone.
TEST_P(Tutorial, CommandsPrintWhatItShows) {
  const fs::path file = kRoot / "docs/tutorials" / (GetParam() + ".md");
  Lines page = lines_of(read_file(file));
  const ScratchDirectory scratch;
  fs::copy_file(kRoot / "examples/07_gpt2_medium/zero_config.py", scratch.path() / "zero_config.py");
  write_files(page, scratch);
  const std::vector<Shown> all = shown_in(page);
  EXPECT_GE(all.size(), 4u);
  const bool update = std::getenv("SHARDSCOPE_UPDATE_EXPECTED") != nullptr;
  int compared = 0;
  for (const Shown& shown : all) {
    const bool measured =
        shown.command.starts_with("shardscope train") || shown.command.starts_with("shardscope verify");
#ifndef WITH_RANKS
    if (measured) continue;
#endif
    const Outcome outcome = run_line({.text = shown.command}, scratch);
    EXPECT_EQ(outcome.exit_code, 0) << shown.command << "\n" << outcome.err;
    const Lines raw = lines_of(outcome.out);
    const Lines printed = comparable(outcome.out, measured);
    std::size_t at = 0;
    for (std::size_t i = shown.said; i < shown.end; ++i) {
      if (page[i] == "...") continue;
      const std::string wanted = measured ? comparable(page[i] + "\n", true).at(0) : page[i];
      auto found = std::find(printed.begin() + static_cast<std::ptrdiff_t>(at), printed.end(), wanted);
      if (found == printed.end() && update) {
        found = std::find_if(printed.begin() + static_cast<std::ptrdiff_t>(at), printed.end(),
                             [&](const auto& each) { return without_numbers(each) == without_numbers(wanted); });
        if (found != printed.end() && raw.size() == printed.size())
          page[i] = raw[static_cast<std::size_t>(found - printed.begin())];
      }
      if (found == printed.end()) {
        ADD_FAILURE() << file << ":" << i + 1 << "\n  " << wanted << "\nis not printed by " << shown.command << "\n"
                      << outcome.out;
        break;
      }
      at = static_cast<std::size_t>(found - printed.begin()) + 1;
      ++compared;
    }
  }
  EXPECT_GE(compared, 12);
  if (!update) return;
  std::ofstream out(file);
  for (const std::string& line : page) out << line << "\n";
}

TEST_P(Tutorial, IsListedAndLinksToWhatExists) {
  const std::string name = GetParam() + ".md";
  EXPECT_NE(read_file(kRoot / "docs/tutorials/README.md").find("](" + name + ")"), std::string::npos);
  const std::string text = read_file(kRoot / "docs/tutorials" / name);
  for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
    const std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
    if (target.starts_with("http")) continue;
    EXPECT_TRUE(fs::exists(kRoot / "docs/tutorials" / target)) << name << " links to " << target;
  }
}

Words pages() {
  Words names;
  for (const auto& entry : fs::directory_iterator(kRoot / "docs/tutorials"))
    if (entry.path().extension() == ".md" && entry.path().stem() != "README") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Tutorial, testing::ValuesIn(pages()), [](const auto& each) { return each.param; });

}  // namespace
}  // namespace shard::test
