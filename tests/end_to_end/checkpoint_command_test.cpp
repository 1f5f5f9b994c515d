// Does `checkpoint` list, read again and show what is there, and say of every damage which file, bytes and tensor?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/state/checkpoint/layout.h"
#include "executor/state/checkpoint/names.h"
#include "tests/end_to_end/command_lines.h"
#include "tests/end_to_end/program.h"
#include "tests/state/checkpoint_files.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

/// A run's folder with steps 10 and 20 in it.
class CheckpointCommand : public testing::Test {
 protected:
  CheckpointCommand() {
    using checkpoint::TensorSpec;
    layout_ = checkpoint::lay_out(std::vector<TensorSpec>{{"wte.weight", "F32", {64, 32}}, {"ln.bias", "BF16", {32}}},
                                  std::vector<TensorSpec>{{"wte.weight.exp_avg", "F32", {64, 32}},
                                                          {"wte.weight.step", "F32", {}},
                                                          {"loss_scaler.good_steps", "I32", {}}});
    for (const std::uint32_t step : {10U, 20U}) {
      const Result<fs::path> saved = save(run_, step, layout_, step);
      EXPECT_TRUE(saved) << to_string(saved.error());
    }
  }
  [[nodiscard]] std::string step(std::int64_t number) const { return (run_ / checkpoint::step_name(number)).string(); }
  [[nodiscard]] Outcome ask(const Words& words) const {
    Words all{"checkpoint"};
    all.insert(all.end(), words.begin(), words.end());
    return shardscope(all, {.directory = scratch_.path()});
  }
  /// Another value of the last byte, which is the last tensor's.
  void damage(const fs::path& file) const {
    std::string text = text_of(file);
    text.back() = static_cast<char>(text.back() ^ 1);
    std::ofstream(file, std::ios::binary) << text;
  }
  [[nodiscard]] std::int64_t bytes_of_one() const {
    std::int64_t bytes = layout_.bytes;
    for (const checkpoint::SmallFile& small : small_files(10)) bytes += static_cast<std::int64_t>(small.text.size());
    return bytes;
  }

  ScratchDirectory scratch_;
  fs::path run_ = scratch_.path() / "run";
  checkpoint::Layout layout_;
};

TEST_F(CheckpointCommand, ListsTheNewestLast) {
  const Outcome text = ask({"list", "run"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("checkpoint +step +tokens +saved \\(UTC\\) +size +complete"));
  EXPECT_THAT(text.out, ContainsRegex("step-00000010 +10 +4,106 +20[0-9-]+ [0-9:]+ +" + std::to_string(bytes_of_one()) +
                                      " B +yes"));
  EXPECT_LT(text.out.find("step-00000010"), text.out.find("step-00000020"));
  const json j = json_of(ask({"list", "run", "--json"}));
  EXPECT_EQ(j["action"], "list");
  EXPECT_EQ(j["newest_complete"], "run/step-00000020");
  ASSERT_EQ(j["checkpoints"].size(), 2U);
  const json& first = j["checkpoints"][0];
  EXPECT_EQ(first["name"], "step-00000010");
  EXPECT_EQ(first["step"], 10);
  EXPECT_EQ(first["tokens"], 4106);
  EXPECT_EQ(first["bytes"], bytes_of_one());
  EXPECT_EQ(first["complete"], true);
  EXPECT_EQ(first["why_not"], nullptr);
  EXPECT_THAT(first["saved_at"].get<std::string>(), testing::MatchesRegex("20[0-9-]+T[0-9:]+Z"));
  EXPECT_THAT(ask({"list", "run", "--format", "csv"}).out, HasSubstr("name,step,tokens,saved_at,bytes,complete"));
  const json one = json_of(ask({"list", "run/step-00000010/", "--json"}));
  ASSERT_EQ(one["checkpoints"].size(), 1U);
  EXPECT_EQ(one["checkpoints"][0]["name"], "step-00000010");
}

TEST_F(CheckpointCommand, ListSaysWhyOneIsNotComplete) {
  fs::resize_file(step(10) + "/model.safetensors", 100);
  fs::remove(step(20) + "/config.json");
  const json j = json_of(ask({"list", "run", "--json"}));
  EXPECT_EQ(j["newest_complete"], nullptr);
  EXPECT_THAT(j["checkpoints"][0]["why_not"].get<std::string>(), HasSubstr("model.safetensors has 100 bytes"));
  EXPECT_EQ(j["checkpoints"][1]["why_not"], "config.json is not there");
  EXPECT_THAT(ask({"list", "run"}).out, ContainsRegex("no +config.json is not there"));
  fs::remove(step(20) + "/manifest.json");
  const json without = json_of(ask({"list", "run", "--json"}));
  EXPECT_THAT(without["checkpoints"][1]["why_not"].get<std::string>(), HasSubstr("has no manifest.json"));
  EXPECT_EQ(without["checkpoints"][1]["bytes"], nullptr);
}

TEST_F(CheckpointCommand, VerifyReadsEveryByte) {
  const Outcome text = ask({"verify", "run"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              ContainsRegex("^step-00000010  right, all [0-9,]+ bytes\nstep-00000020  right, all [0-9,]+ bytes\n$"));
  const json j = json_of(ask({"verify", "run", "--json"}));
  EXPECT_EQ(j["all_right"], true);
  EXPECT_EQ(j["newest_right"], "run/step-00000020");
  for (const json& each : j["checkpoints"]) {
    EXPECT_EQ(each["right"], true);
    EXPECT_EQ(each["wrong"], nullptr);
    EXPECT_GE(each["read_bytes"], bytes_of_one());
  }
}

TEST_F(CheckpointCommand, VerifyNamesFileBytesAndTensorOfADamage) {
  damage(step(20) + "/optimizer.safetensors");
  const Outcome text = ask({"verify", "run"});
  EXPECT_EQ(text.exit_code, 65);
  EXPECT_THAT(text.out, HasSubstr("step-00000010  right, "));
  EXPECT_THAT(text.out, ContainsRegex("step-00000020  optimizer.safetensors bytes [0-9]+ to [0-9]+ are not what was "
                                      "saved: [^\n]+, in tensor 'wte.weight.exp_avg'\n"));
  EXPECT_THAT(text.out, HasSubstr("\n1 of 2 right, the newest of them step-00000010\n"));
  const json j = json_of(ask({"verify", "run", "--json"}), 65);
  EXPECT_EQ(j["all_right"], false);
  EXPECT_EQ(j["newest_right"], "run/step-00000010");
  EXPECT_EQ(j["checkpoints"][1]["file"], "optimizer.safetensors");
  EXPECT_THAT(j["checkpoints"][1]["wrong"].get<std::string>(), HasSubstr("in tensor '"));
  // The sizes are right, and that is all that a list looks at.
  EXPECT_EQ(json_of(ask({"list", "run", "--json"}))["checkpoints"][1]["complete"], true);
  EXPECT_EQ(ask({"verify", "run/step-00000010"}).exit_code, 0);
  EXPECT_EQ(ask({"verify", "run/step-00000020"}).exit_code, 65);
}

TEST_F(CheckpointCommand, VerifyFindsWhatIsCutGoneOrOfAnotherStep) {
  const auto wrong = [&] {
    const json j = json_of(ask({"verify", "run/step-00000010", "--json"}), 65);
    const json& one = j["checkpoints"].at(0);
    return one["file"].dump() + " " + one["wrong"].get<std::string>();
  };
  const fs::path config = step(10) + "/config.json";
  const std::string whole = text_of(config);
  fs::resize_file(config, 3);
  EXPECT_THAT(wrong(), HasSubstr("\"config.json\" has 3 bytes"));
  fs::remove(config);
  EXPECT_THAT(wrong(), HasSubstr("\"config.json\" is in the checkpoint's manifest and not there"));
  std::ofstream(config, std::ios::binary) << whole;
  EXPECT_EQ(ask({"verify", "run"}).exit_code, 0);
  damage(step(10) + "/manifest.json");
  EXPECT_THAT(wrong(), HasSubstr("\"manifest.json\""));
  fs::remove(step(10) + "/manifest.json");
  const Outcome gone = ask({"verify", "run"});
  EXPECT_EQ(gone.exit_code, 65);
  EXPECT_THAT(gone.out, HasSubstr("step-00000010  is no checkpoint: it has no manifest.json\n"));
  fs::remove_all(step(10));
  fs::rename(step(20), step(10));
  EXPECT_THAT(wrong(), HasSubstr("null is of step 20 by its manifest"));
  fs::rename(step(10), run_ / "best");
  EXPECT_EQ(ask({"verify", "run/best"}).exit_code, 0);
}

TEST_F(CheckpointCommand, ShowsTheNewestOrTheOneThatIsNamed) {
  const Outcome text = ask({"show", "run"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* line : {"checkpoint       run/step-00000020\n", "step             20\n", "tokens           4,116\n",
                           "micro-batches    4\n", "weights          2 tensors, 2,080 elements, ",
                           "optimizer state  3 tensors, 2,050 ", "\nIts numbers depend on\n  seed  20\n",
                           "\nAbout the run\n  model  a \"quoted\" name, \xc3\xa9\\n\n", "model.safetensors"})
    EXPECT_THAT(text.out, HasSubstr(line));
  EXPECT_THAT(text.out, Not(HasSubstr("exp_avg")));
  const json j = json_of(ask({"show", "run/step-00000010", "--json"}));
  EXPECT_EQ(j["path"], "run/step-00000010");
  EXPECT_EQ(j["step"], 10);
  EXPECT_EQ(j["micro_batches"], 4);
  EXPECT_EQ(j["bytes"], bytes_of_one());
  EXPECT_EQ(j["numbers"], (json{{"seed", "10"}}));
  EXPECT_EQ(j["about"]["model"], "a \"quoted\" name, \xc3\xa9\n");
  EXPECT_EQ(j["weights"], json::parse(R"({"tensor_count": 2, "element_count": 2080, "bytes": 8256,
                                          "dtypes": ["BF16", "F32"]})"));
  EXPECT_EQ(j["optimizer_state"]["bytes"], 8200);
  EXPECT_EQ(j["files"].size(), 4U);
  EXPECT_EQ(j["tensors"], nullptr);
}

TEST_F(CheckpointCommand, ShowsEveryTensor) {
  const Outcome text = ask({"show", "run", "--tensors"});
  EXPECT_THAT(text.out, ContainsRegex("wte.weight.exp_avg +F32 +64x32 +8,192 +optimizer.safetensors"));
  EXPECT_THAT(text.out, ContainsRegex("wte.weight.step +F32 +scalar +4 +optimizer.safetensors"));
  const json j = json_of(ask({"show", "run", "--tensors", "--json"}));
  ASSERT_EQ(j["tensors"].size(), 5U);
  EXPECT_EQ(j["tensors"][1], json::parse(R"({"name": "ln.bias", "dtype": "BF16", "shape": [32], "bytes": 64,
                                             "file": "model.safetensors"})"));
}

TEST_F(CheckpointCommand, ShowPassesOverWhatIsNotCompleteAndSaysSo) {
  fs::remove(step(20) + "/empty");
  const Outcome older = ask({"show", "run", "--json"});
  EXPECT_EQ(json_of(older)["step"], 10);
  EXPECT_THAT(older.err, HasSubstr("step-00000020 is newer and not complete: empty is not there"));
  EXPECT_EQ(ask({"show", "run/step-00000020"}).exit_code, 65);
  fs::remove(step(10) + "/empty");
  const Outcome none = ask({"show", "run"});
  EXPECT_EQ(none.exit_code, 66);
  EXPECT_THAT(none.err, HasSubstr("has no complete checkpoint; the newest is step-00000020"));
}

TEST_F(CheckpointCommand, SaysWhatIsNoCheckpoint) {
  scratch_.write("notes.txt", "a");
  fs::create_directory(scratch_.path() / "other");
  scratch_.write("other/notes.txt", "a");
  for (const char* verb : {"list", "verify", "show"}) {
    for (const auto& [path, words] :
         {std::pair{"notes.txt", "is a file, not a checkpoint"}, std::pair{"nosuch", "there is no such folder"},
          std::pair{"other", "has no checkpoint; it has notes.txt"}}) {
      const Outcome outcome = ask({verb, path});
      EXPECT_EQ(outcome.exit_code, 66) << verb << ' ' << path;
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, HasSubstr(words)) << verb;
      EXPECT_THAT(outcome.err, HasSubstr("\n  try: ")) << verb;
    }
  }
}

TEST_F(CheckpointCommand, AnswersWrongWords) {
  const auto refused = [&](const Words& words, int code, const char* what) {
    const Outcome outcome = ask(words);
    EXPECT_EQ(outcome.exit_code, code) << what;
    EXPECT_THAT(outcome.err, HasSubstr(what));
  };
  refused({"prune", "run"}, 2, "'prune' is neither list, verify, show nor import");
  refused({"prune", "run"}, 2, "list, verify, show, import");
  refused({"verfy", "run"}, 2, "did you mean 'verify'?");
  refused({"run"}, 2, "'shardscope checkpoint list run'");
  refused({"list"}, 2, "DIR is missing");
  refused({}, 2, "list|verify|show|import is missing");
  refused({"list", "run", "run"}, 2, "'run' is one DIR too many");
  refused({"import", "run"}, 2, "INTO is missing");
  refused({"list", "run", "--step", "3"}, 2, "--step is of import");
  refused({"list", "run", "--tensors"}, 2, "--tensors is of show");
  refused({"show", "run", "--format", "csv"}, 78, "--format csv");
}

TEST_F(CheckpointCommand, HelpIsReachedAndItsExamplesRun) {
  const Outcome help = shardscope({"help", "checkpoint"});
  EXPECT_EQ(help.exit_code, 0);
  fs::copy(fs::path(TORCH_FILES) / "zero3", scratch_.path() / "zero3", fs::copy_options::recursive);
  const std::vector<CommandLine> lines = command_lines(help.out.substr(help.out.find("Examples:\n")));
  EXPECT_GE(lines.size(), 5U);
  for (const CommandLine& line : lines) {
    const Outcome outcome = run_line(line, scratch_);
    EXPECT_EQ(outcome.exit_code, 0) << line.text << "\n" << outcome.err;
    EXPECT_NE(outcome.out, "");
  }
  EXPECT_THAT(shardscope({"--help"}).out, HasSubstr("\n  checkpoint  lists the checkpoints of a run"));
  EXPECT_THAT(shardscope({"man", "checkpoint"}).out, testing::StartsWith(".TH "));
  EXPECT_THAT(shardscope({"completion", "bash"}).out, HasSubstr("words='list verify show import' files=1"));
}

TEST_F(CheckpointCommand, ChangesNothing) {
  const auto before = texts_in(step(20));
  for (const char* verb : {"list", "verify", "show"}) EXPECT_EQ(ask({verb, "run"}).exit_code, 0);
  EXPECT_EQ(texts_in(step(20)), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(run_), {}), 2);
}

TEST_F(CheckpointCommand, ShowsWhatOtherLibrariesSaved) {
  const std::string zero = (fs::path(TORCH_FILES) / "zero3").string();
  const Outcome shown = ask({"show", zero});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, testing::AllOf(HasSubstr("DeepSpeed checkpoint, ZeRO stage 3"), ContainsRegex("step +3\n"),
                                        HasSubstr("16 tensors, 768 elements"), HasSubstr("32 tensors, 1,536 elements"),
                                        HasSubstr("lm_head.weight is transformer.wte.weight")));
  const json j = json_of(ask({"show", (fs::path(TORCH_FILES) / "dcp").string(), "--tensors", "--json"}));
  EXPECT_EQ(j["form"], "PyTorch Distributed Checkpoint");
  ASSERT_EQ(j["tensors"].size(), 49U);
  EXPECT_EQ(j["tensors"][0], (json{{"name", "transformer.wte.weight"}, {"shape", {33, 6}}, {"parts", 2}}));
}

TEST_F(CheckpointCommand, ImportsIntoAFolderOfCheckpoints) {
  const std::string zero = (fs::path(TORCH_FILES) / "zero3").string();
  const Outcome imported = ask({"import", zero, "run", "--step", "30"});
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("run/step-00000030"));
  EXPECT_EQ(json_of(ask({"list", "run", "--json"}))["newest_complete"], "run/step-00000030");
  EXPECT_EQ(ask({"verify", "run"}).exit_code, 0);
  const json shown = json_of(ask({"show", "run", "--json"}));
  EXPECT_EQ(shown["about"]["imported from"], "DeepSpeed checkpoint, ZeRO stage 3");
  EXPECT_EQ(shown["weights"]["element_count"], 768);
}

TEST_F(CheckpointCommand, AnImportThatIsRefusedLeavesNothing) {
  scratch_.write("evil.pt", "not one");
  const Outcome refused = ask({"import", "evil.pt", "new"});
  EXPECT_EQ(refused.exit_code, 65);
  EXPECT_THAT(refused.err, HasSubstr("evil.pt: is no file of torch.save"));
  EXPECT_FALSE(fs::exists(scratch_.path() / "new"));
  EXPECT_EQ(ask({"import", "nosuch", "new"}).exit_code, 66);
}

}  // namespace
}  // namespace shard::test
