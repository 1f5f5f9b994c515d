// Does `shardscope train` save what it is asked for, and go on from it by other ranks and strategies, or say why not?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/end_to_end/as_predicted.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

/// A small run of five steps, of one class of bits.
Words five_steps(const Words& more) {
  Words words{"--model", "gpt2-nano", "--data", "random", "--sequence", "32", "--steps", "5", "--global-batch", "4"};
  words.insert(words.end(), more.begin(), more.end());
  return train(words);
}

std::string sha_of(const Outcome& outcome) {
  return json_of(outcome)["state_sha256"].get<std::string>();
}

/// The folder `saved` with the checkpoints behind every second step and the last.
void save(const ScratchDirectory& scratch, const Words& more = {}) {
  Words words{"--ranks", "2", "--stage", "3", "--save", "saved", "--save-every", "2", "--save-at-exit"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome saving = shardscope(five_steps(words), {.directory = scratch.path()});
  ASSERT_EQ(saving.exit_code, 0) << saving.err;
  const json saved = json_of(saving)["saved_checkpoints"];
  ASSERT_EQ(saved.size(), 3U);
  EXPECT_EQ(saved[2]["path"], "saved/step-00000005");
}

Words names_in(const std::filesystem::path& folder) {
  Words names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST(Resume, GoesOnByOtherRanksToTheSameBits) {
  const ScratchDirectory scratch;
  const std::string whole = sha_of(shardscope(five_steps({}), {.directory = scratch.path()}));
  save(scratch);
  EXPECT_THAT(names_in(scratch.path() / "saved"), ElementsAre("step-00000002", "step-00000004", "step-00000005"));
  for (const auto& [ranks, other] : {std::pair<std::size_t, Words>{1, {}},
                                     {4, {"--ranks", "4", "--stage", "2"}},
                                     {2, {"--ranks", "2", "--stage", "3", "--placement", "host"}}}) {
    Words words{"--resume", "saved/step-00000002"};
    words.insert(words.end(), other.begin(), other.end());
    const Outcome resumed = shardscope(five_steps(words), {.directory = scratch.path()});
    EXPECT_EQ(sha_of(resumed), whole);
    EXPECT_THAT(resumed.err, HasSubstr("step 3/5"));
    const json run = json_of(resumed);
    EXPECT_EQ(run["steps"].size(), 3U);
    expect_as_predicted(run, ranks);
    EXPECT_EQ(run["resumed"]["path"], "saved/step-00000002");
    EXPECT_EQ(run["resumed"]["step"], 2);
    EXPECT_THAT(run["saved_checkpoints"], testing::IsEmpty());
  }
}

TEST(Resume, TakesTheNewestThatIsWhole) {
  const ScratchDirectory scratch;
  save(scratch);
  std::filesystem::remove_all(scratch.path() / "saved/step-00000005");
  std::filesystem::remove(scratch.path() / "saved/step-00000004/optimizer.safetensors");
  const Outcome resumed = shardscope(five_steps({"--resume", "saved"}), {.directory = scratch.path()});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("step 3/5"));
}

TEST(Resume, KeepsAsManyAsItIsTold) {
  const ScratchDirectory scratch;
  save(scratch, {"--keep", "2"});
  EXPECT_THAT(names_in(scratch.path() / "saved"), ElementsAre("step-00000004", "step-00000005"));
}

TEST(Resume, RemovesWhatADeadSaveLeft) {
  const ScratchDirectory scratch;
  std::filesystem::create_directories(scratch.path() / "saved/.step-00000001.0123456789abcdef.partial");
  save(scratch);
  EXPECT_THAT(names_in(scratch.path() / "saved"), ElementsAre("step-00000002", "step-00000004", "step-00000005"));
}

TEST(Resume, SavesTheLastStepWhereNothingElseIsSaid) {
  const ScratchDirectory scratch;
  const Outcome saving = shardscope(five_steps({"--save", "saved"}), {.directory = scratch.path()});
  EXPECT_EQ(saving.exit_code, 0) << saving.err;
  EXPECT_THAT(names_in(scratch.path() / "saved"), ElementsAre("step-00000005"));
}

TEST(Resume, RefusesWhatWouldChangeTheNumbersByName) {
  const ScratchDirectory scratch;
  save(scratch);
  const auto refused = [&](const Words& more) {
    Words words{"--resume", "saved/step-00000002"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = shardscope(five_steps(words), {.directory = scratch.path()});
    EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused({"--precision", "bf16"}), HasSubstr("precision fp32, now bf16"));
  EXPECT_THAT(refused({"--seed", "7"}), HasSubstr("seed 0, now 7"));
  EXPECT_THAT(refused({"--micro-batch", "2"}), HasSubstr("micro-batch 1, now 2"));
  EXPECT_THAT(refused({"--lr", "0.5"}), HasSubstr("learning rate constant"));
  EXPECT_THAT(refused({"--optimizer", "sgd"}), HasSubstr("optimizer adamw, now sgd"));
  const Outcome over = shardscope(train({"--model", "gpt2-nano", "--data", "random", "--sequence", "32", "--steps", "2",
                                         "--global-batch", "4", "--resume", "saved/step-00000002"}),
                                  {.directory = scratch.path()});
  EXPECT_EQ(over.exit_code, 78);
  EXPECT_THAT(over.err, HasSubstr("stands behind step 2"));
  EXPECT_THAT(refused({"--weights", "saved/step-00000002"}), HasSubstr("both say what parameters begin with"));
}

TEST(Resume, GoesOnInexactlyWhereItIsTold) {
  const ScratchDirectory scratch;
  save(scratch);
  const Outcome outcome = shardscope(
      five_steps({"--resume", "saved/step-00000002", "--resume-inexact", "--precision", "bf16", "--optimizer", "adam"}),
      {.directory = scratch.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("precision fp32, now bf16"));
}

TEST(Resume, SaysWhatIsDamaged) {
  const ScratchDirectory scratch;
  save(scratch);
  const auto file = scratch.path() / "saved/step-00000002/optimizer.safetensors";
  std::string text = read_file(file.string());
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  std::ofstream(file, std::ios::binary) << text;
  const Outcome outcome = shardscope(five_steps({"--ranks", "2", "--stage", "1", "--resume", "saved/step-00000002"}),
                                     {.directory = scratch.path()});
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("optimizer.safetensors"));
}

/// SHARDSCOPE_KILLS is the number of runs (the ordinary run: a few; the figure in docs/checkpoints.md: 150).
TEST(Resume, AfterAKillAtAnyMomentGoesOnToTheSameBits) {
  const char* const wanted = std::getenv("SHARDSCOPE_KILLS");
  const int kills = wanted == nullptr ? 3 : std::atoi(wanted);
  const ScratchDirectory scratch;
  constexpr int kSteps = 12;
  const Words run_words{
      "train", "--model", "gpt2-nano",           "--data", "random", "--sequence", "32", "--global-batch",
      "4",     "--steps", std::to_string(kSteps)};
  const auto with = [&](const Words& more) {
    Words words = run_words;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string whole = sha_of(shardscope(with({"--json"}), {.directory = scratch.path()}));
  std::mt19937 random(20);
  int from_the_beginning = 0;
  for (int i = 0; i < kills; ++i) {
    std::filesystem::remove_all(scratch.path() / "saved");
    Words words{shardscope_path()};
    const Words saving = with({"--ranks", std::to_string(1 << random() % 3), "--stage", std::to_string(random() % 4),
                               "--save", "saved", "--save-every", "1", "--keep", "2"});
    words.insert(words.end(), saving.begin(), saving.end());
    {
      Program program(words,
                      {.directory = scratch.path(), .environment = {{"SHARDSCOPE_TEST_RUN", scratch.path().string()}}});
      const auto step = 1 + random() % (kSteps - 1);
      ASSERT_TRUE(program.read_line("step " + std::to_string(step) + "/")) << program.wait().err;
      // The save behind the step has some milliseconds; a kill waits for none of them, or for some.
      if (random() % 2 == 0) {
        ASSERT_TRUE(program.read_line("saved")) << program.wait().err;
      }
      const std::vector<pid_t> all = processes_with("SHARDSCOPE_TEST_RUN=" + scratch.path().string());
      ASSERT_FALSE(all.empty());
      static_cast<void>(kill(all[random() % all.size()], SIGKILL));
      static_cast<void>(program.wait());
    }
    const Outcome listed = shardscope({"checkpoint", "list", "saved", "--json"}, {.directory = scratch.path()});
    if (listed.exit_code == 66) {  // none was whole yet
      ++from_the_beginning;
      continue;
    }
    const Outcome resumed = shardscope(with({"--json", "--resume", "saved", "--ranks", std::to_string(1 + random() % 2),
                                             "--stage", std::to_string(random() % 4)}),
                                       {.directory = scratch.path()});
    if (resumed.exit_code == 78 && resumed.err.find("are done") != std::string::npos) continue;  // killed at its end
    EXPECT_EQ(sha_of(resumed), whole) << "run " << i;
  }
  EXPECT_LT(from_the_beginning, std::max(kills, 2));
}

TEST(Resume, ARunOfPyTorchGoesOnWithItsLosses) {
  const std::filesystem::path torch = std::filesystem::path(TORCH_FILES) / "continued";
  const ScratchDirectory scratch;
  const Outcome imported =
      shardscope({"checkpoint", "import", torch.string(), "imported", "--json"}, {.directory = scratch.path()});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(json_of(imported)["path"], "imported/step-00000003");
  EXPECT_EQ(json_of(imported)["optimizer_state"]["tensor_count"], 32);
  const Words run{"--model",        "imported/step-00000003/config.json",
                  "--data",         (torch / "tokens.bin").string(),
                  "--data-order",   "sequential",
                  "--sequence",     "8",
                  "--global-batch", "4",
                  "--ranks",        "2",
                  "--stage",        "3",
                  "--steps",        "8",
                  "--lr",           "0.01",
                  "--beta2",        "0.95",
                  "--weight-decay", "0.1",
                  "--resume",       "imported"};
  Words words = train(run);
  EXPECT_THAT(shardscope(words, {.directory = scratch.path()}).err, HasSubstr("does not say how it was trained"));
  words.push_back("--resume-inexact");
  const json resumed = json_of(shardscope(words, {.directory = scratch.path()}));
  std::ifstream in(torch / "losses.json");
  const json losses = json::parse(in);
  ASSERT_EQ(resumed["steps"].size(), 5U);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(resumed["steps"][i]["loss"].get<double>(), losses[3 + i].get<double>(), 4e-6) << "step " << 4 + i;
}

TEST(Resume, WhatPyTorchSavedIsNamedWhereItIsNotRead) {
  const ScratchDirectory scratch;
  const std::string folder = std::string(TORCH_FILES) + "/zero3";
  for (const char* const option : {"--resume", "--weights"})
    EXPECT_THAT(
        shardscope(five_steps({option, folder}), {.directory = scratch.path()}).err,
        testing::AllOf(HasSubstr("is a DeepSpeed checkpoint"), HasSubstr("shardscope checkpoint import " + folder)));
}

TEST(Resume, ShuffledFilesGoOnWhereTheyWere) {
  const ScratchDirectory scratch;
  for (const char* name : {"a.bin", "b.bin"}) {
    std::ofstream file(scratch.file(name), std::ios::binary);
    for (std::uint32_t i = 0; i < 700; ++i) {
      const auto token = static_cast<std::uint16_t>(i * i % 251 + static_cast<unsigned char>(*name) % 2);
      file.write(reinterpret_cast<const char*>(&token), 2);
    }
  }
  const auto run = [&](const Words& more) {
    Words words{"--model", "gpt2-nano", "--data",         ".", "--data-order", "shuffled",
                "--steps", "8",         "--global-batch", "8", "--sequence",   "32"};
    words.insert(words.end(), more.begin(), more.end());
    return shardscope(train(words), {.directory = scratch.path()});
  };
  // 42 windows are five steps and a quarter: the epoch ends on the way.
  const json whole = json_of(run({"--save", "saved", "--save-every", "3"}));
  EXPECT_THAT(whole["data"].get<std::string>(), HasSubstr("42 windows shuffled"));
  const json resumed = json_of(run({"--resume", "saved/step-00000003", "--ranks", "4", "--stage", "2"}));
  EXPECT_EQ(resumed["state_sha256"], whole["state_sha256"]);
  std::filesystem::resize_file(scratch.file("b.bin"), 1200);
  const Outcome shorter = run({"--resume", "saved/step-00000003"});
  EXPECT_EQ(shorter.exit_code, 78) << shorter.err;
  EXPECT_THAT(shorter.err, HasSubstr("data"));
}

TEST(Resume, OptionsThatGoTogetherSayTheirOther) {
  const ScratchDirectory scratch;
  const auto refused = [&](const Words& words, int code) {
    const Outcome outcome = shardscope(five_steps(words), {.directory = scratch.path()});
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused({"--save-every", "2"}, 78), HasSubstr("--save DIR"));
  EXPECT_THAT(refused({"--keep", "2"}, 78), HasSubstr("--save DIR"));
  EXPECT_THAT(refused({"--resume-inexact"}, 78), HasSubstr("--resume DIR"));
  EXPECT_THAT(refused({"--resume", "nowhere"}, 66), HasSubstr("nowhere"));
  EXPECT_THAT(refused({"--save", "/proc/saved"}, 73), HasSubstr("--save"));
}

}  // namespace
}  // namespace shard::test
