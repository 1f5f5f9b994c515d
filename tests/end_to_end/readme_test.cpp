// Are the README's commands run by a test, and is what it says of them true?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>

#include "tests/end_to_end/command_lines.h"
#include "tests/end_to_end/expected.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string document(const std::string& name) {
  return read_file(fs::path(TEST_DATA).parent_path() / name);
}

std::string readme() {
  return document("README.md");
}

/// What its reader has: a configuration, a snapshot of a run and the script that was run.
void place_files(const ScratchDirectory& scratch) {
  const fs::path data = TEST_DATA;
  fs::copy(data / "data/snapshots/ds_z3_offload.json", scratch.path());
  fs::copy(data / "data/snapshots/small_decoder.pickle", scratch.path() / "snapshot.pickle");
  fs::copy(data.parent_path() / "examples/dryrun_snapshot/train.py", scratch.path());
}

/// Can it run in this build?
bool has_programs_for(const std::string& command) {
  bool ranks = false;
  bool viewer = false;
#ifdef WITH_RANKS
  ranks = true;
#endif
#ifdef WITH_VIEWER
  viewer = true;
#endif
  const auto says = [&](const char* word) { return command.find(word) != std::string::npos; };
  if (says("python3 ") && !has_pytorch()) return false;
  if (!ranks && (says("shardscope train") || says("measured.sst"))) return false;
  return viewer || !(says("shardscope view") || says("shardscope report") || says(".png"));
}

/// Normalised, with digests all alike: which is the first differs between an extract and the whole.
std::string plain(const std::string& text) {
  static const std::regex kDigest("<digest [0-9]+>");
  return std::regex_replace(normalised(text), kDigest, "<digest>");
}

/// Every command, in order, in one directory: those of README.md, then of the documents that go on from it. Beneath "$
/// COMMAND", until an empty line, stand lines of its output: each must be printed, once both are normalised; "..."
/// stands for lines left out.
TEST(Readme, CommandsRunAndPrintWhatItQuotes) {
  const ScratchDirectory scratch;
  place_files(scratch);
  std::istringstream in(readme() + "\n" + document("docs/training.md") + "\n" + document("docs/viewing.md"));
  std::string said;
  std::map<std::string, std::string> said_by;  // each command
  bool comparing = false;
  int commands = 0;
  int run = 0;
  int quoted = 0;
  for (std::string line; std::getline(in, line);) {
    if (line == "$ make demo") {
      // What the demonstration prints stands beside it, and examples_test compares that.
      said = read_file(fs::path(TEST_DATA).parent_path() / "examples/01_first_light/expected.txt");
      comparing = true;
      continue;
    }
    std::string start = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (start.starts_with("$ ")) start.erase(0, 2);
    if (start.starts_with("shardscope ")) {
      std::string whole = line + "\n";
      while (line.ends_with('\\') && std::getline(in, line)) whole += line + "\n";
      const CommandLine command = command_lines(whole).at(0);
      ++commands;
      comparing = has_programs_for(command.text);
      if (!comparing) continue;
      ++run;
      // Documents repeat commands of those before them, and nothing that these need changes in between.
      if (const auto before = said_by.find(command.text); before != said_by.end()) {
        said = before->second;
        continue;
      }
      const Outcome outcome = run_line(command, scratch);
      EXPECT_EQ(outcome.exit_code, command.exit_code) << command.text << "\n" << outcome.err;
      said = said_by[command.text] = plain(outcome.out + outcome.err);
    } else if (line.empty() || line.starts_with("```") || line.starts_with("$ ")) {
      comparing = false;
    } else if (comparing && line != "...") {
      std::string expected = plain(line);
      expected.pop_back();
      EXPECT_THAT(said, HasSubstr(expected)) << "the README quotes a line that is not printed";
      ++quoted;
    }
  }
  EXPECT_GE(commands, 4);
  if (has_programs_for("shardscope train, then shardscope view")) {
    EXPECT_EQ(run, has_pytorch() ? commands : commands - 1) << "only the dry run needs PyTorch";
  }
  EXPECT_GE(quoted, 15);
}

TEST(Readme, IsReadInOneSitting) {
  const std::string text = readme();
  EXPECT_LE(std::ranges::count(text, '\n'), 150);
}

TEST(Readme, EveryTargetOfMakeThatItNamesExists) {
  const std::string text = readme();
  const std::string makefile = read_file(fs::path(TEST_DATA).parent_path() / "Makefile");
  int named = 0;
  for (std::size_t at = text.find("`make "); at != std::string::npos; at = text.find("`make ", at + 1)) {
    const std::string target = text.substr(at + 6, text.find_first_of("` ", at + 6) - at - 6);
    EXPECT_THAT(makefile, HasSubstr("\n" + target + ":")) << target;
    ++named;
  }
  EXPECT_GE(named, 2);
}

TEST(Readme, FilesThatItNamesExist) {
  const fs::path root = fs::path(TEST_DATA).parent_path();
  for (const char* document : {"README.md", "examples/README.md"}) {
    const std::string text = read_file(root / document);
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
      const std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
      if (target.starts_with("http") || target.starts_with("#")) continue;
      EXPECT_TRUE(fs::exists((root / document).parent_path() / target)) << document << " links to " << target;
    }
  }
}

}  // namespace
}  // namespace shard::test
