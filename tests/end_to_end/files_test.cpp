// What happens to the files that a command is given: inputs are safe, outputs whole, devices what they were.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A scratch directory with one input of each kind.
class Inputs : public ScratchDirectory {
 public:
  Inputs() {
    write("data.txt", read_file("/usr/share/common-licenses/GPL-3"));
    write("run.conf", "model = model.json\n");
    write("model.json",
          R"({"model_type": "gpt2", "vocab_size": 256, "n_positions": 32, "n_embd": 32, "n_layer": 1, "n_head": 2})");
    EXPECT_EQ(call({"simulate", "--model", "model.json", "--trace", "trace.sst"}).exit_code, 0);
    write("search.json", call({"search", "--model", "gpt2-nano", "--json"}).out);
    fs::create_symlink("trace.sst", path() / "link.sst");
    fs::create_hard_link(path() / "trace.sst", path() / "hard.sst");
    fs::create_symlink("new.sst", path() / "later.sst");
  }
  [[nodiscard]] Outcome call(const Words& arguments) const { return shardscope(arguments, {.directory = path()}); }
  /// Every file and folder, below folders too, with its content; links by what they lead to.
  [[nodiscard]] std::map<std::string, std::string> content() const {
    std::map<std::string, std::string> all;
    for (const fs::directory_entry& each : fs::recursive_directory_iterator(path()))
      all[each.path()] = each.is_regular_file() ? read_file(each.path()) : "";
    return all;
  }
};

TEST(Outputs, AreNeverAnInputOrAnotherOutput) {
  const Inputs in;
  const Words train{"train", "--model", "model.json", "--data", "text:data.txt", "--steps", "1"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<Words> all{
      with(train, {"--log", "data.txt"}),
      with(train, {"--trace", "data.txt"}),
      with(train, {"--trace", "./data.txt", "--ranks", "2"}),
      with(train, {"--trace-predicted", "data.txt"}),
      with(train, {"--trace", "model.json"}),
      with(train, {"--trace", "a.sst", "--trace-predicted", "./a.sst"}),
      with(train, {"--trace", "new.sst", "--trace-predicted", "later.sst"}),
      with(train, {"--trace", "a.sst", "--log", "a.sst"}),
      {"train", "--config", "run.conf", "--data", "text:data.txt", "--steps", "1", "--log", "run.conf"},
      {"simulate", "--config", "run.conf", "--trace", "run.conf"},
      {"simulate", "--model", "model.json", "--trace", "model.json"},
      {"simulate", "--model", ".", "--trace", "config.json"},
      with(train, {"--save-weights", "saved", "--log", "saved/model.safetensors"}),
      with(train, {"--save-weights", "saved/", "--trace", "alias/model.safetensors"}),
      with(train, {"--save-weights", "absent", "--trace", "./absent/model.safetensors"}),
      with(train, {"--save-weights", "absent", "--trace-predicted", "absent"}),
      with(train, {"--save-weights", "saved", "--config", "alias/model.safetensors"}),
      with(train, {"--save-weights", "model.json"}),
      with(train, {"--save-weights", "alias", "--weights", "saved"}),
      {"train", "--model", "model.json", "--data", "text:saved/model.safetensors", "--save-weights", "alias"},
      with(train, {"--profile", "--log", "profile.sst"}),
      with(train, {"--profile", "--config", "profile.sst"}),
      {"man", "--all", "saved", "--config", "saved/shardscope-train.1"},
      {"dryrun", "--trace", "p.py", "--", "python3", "p.py"},
      {"dryrun", "--trace", "p.pickle", "--", "python3", "other.py", "--in=p.pickle"},
      {"dryrun", "--trace", "package/__main__.py", "--", "python3", "-m", "package"},
      {"profile", "-o", "program", "--", "./program"},
      {"profile", "-o", "data.txt", "--", "./program", "data.txt"},
      {"convert", "trace.sst", "trace.sst"},
      {"convert", "trace.sst", "link.sst"},
      {"convert", "hard.sst", "trace.sst"},
#ifdef WITH_VIEWER
      {"convert", "trace.sst", "link.sst", "--to", "png"},
      {"view", "trace.sst", "--screenshot", "trace.sst"},
      {"view", "trace.sst", "--screenshot", "hard.sst"},
      {"view", "--search", "search.json", "--screenshot", "search.json"},
      {"view", "trace.sst", "--screenshot", "trace.sst.notes.json"},
      {"report", "trace.sst", "-o", "x.html", "--config", "x.html"},
#endif
  };
  in.write("config.json", read_file(in.path() / "model.json"));
  in.write("trace.sst.notes.json", R"({"schema_version": 1, "notes": []})");
  in.write("x.html", "dark = true\n");
  for (const char* folder : {"saved", "package"}) fs::create_directory(in.path() / folder);
  fs::create_directory_symlink("saved", in.path() / "alias");
  in.write("saved/model.safetensors", "# options\n");
  in.write("saved/shardscope-train.1", "# options\n");
  in.write("profile.sst", "# options\n");
  for (const char* program : {"p.py", "p.pickle", "package/__main__.py", "program"}) in.write(program, "#!/bin/true\n");
  fs::permissions(in.path() / "program", fs::perms::owner_all);
  const auto before = in.content();
  for (const Words& words : all) {
    const Outcome outcome = in.call(words);
    EXPECT_EQ(outcome.exit_code, 78) << testing::PrintToString(words) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("would be lost"));
    EXPECT_EQ(in.content(), before) << testing::PrintToString(words);
  }
}

// Written beside what is read, or not written at all, is no fault.
TEST(Outputs, BesideAnInputAreWritten) {
  const Inputs in;
  const Words train{"train", "--model", "model.json", "--data", "text:data.txt", "--steps", "1"};
  for (const Words& more : {Words{"--save-weights", "."}, Words{"--save-weights", "new", "--log", "log"},
                            Words{"--profile", "--trace", "a.sst", "--log", "profile.sst"},
                            Words{"--save-weights", "new", "--log", "new/log"}}) {
    Words words = train;
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = in.call(words);
    EXPECT_EQ(outcome.exit_code, 0) << testing::PrintToString(words) << outcome.err;
  }
}

TEST(Outputs, AnEmptyNameIsAUsageError) {
  const Inputs in;
  const Words train{"train", "--model", "model.json", "--data", "text:data.txt", "--steps", "1"};
  std::vector<Words> all{{"profile", "-o", "", "--", "true"},
                         {"dryrun", "--trace", "", "--", "true"},
                         {"convert", "trace.sst", "", "--to", "csv"},
                         {"simulate", "--model", "model.json", "--trace", ""}};
  for (const char* option : {"--save-weights", "--weights", "--trace", "--log", "--trace-predicted", "--cluster"}) {
    all.push_back(train);
    all.back().insert(all.back().end(), {option, ""});
  }
  const auto before = in.content();
  for (const Words& words : all) {
    const Outcome outcome = in.call(words);
    EXPECT_EQ(outcome.exit_code, 2) << testing::PrintToString(words) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("the value is empty"));
    EXPECT_EQ(in.content(), before) << testing::PrintToString(words);
  }
}

/// A command that writes OUT, for each kind of output.
std::vector<Words> writers(const std::string& out) {
  return {
      {"simulate", "--model", "model.json", "--trace", out},
      {"train", "--model", "model.json", "--data", "random", "--steps", "1", "--trace", out},
      {"train", "--model", "model.json", "--data", "random", "--steps", "1", "--trace-predicted", out},
      {"train", "--model", "model.json", "--data", "random", "--steps", "1", "--log", out},
      {"convert", "trace.sst", out, "--to", "sst"},
      {"convert", "trace.sst", out, "--to", "csv"},
#ifdef WITH_VIEWER
      {"convert", "trace.sst", out, "--to", "png"},
      {"view", "trace.sst", "--screenshot", out},
#endif
  };
}

TEST(Outputs, APipeIsWrittenToAndStays) {
  const Inputs in;
  ASSERT_EQ(mkfifo(in.file("pipe").c_str(), 0600), 0);
  const Words before = in.list();
  for (const Words& words : writers("pipe")) {
    std::string text;
    std::thread reader([&] { text = read_file(in.path() / "pipe"); });
    EXPECT_EQ(in.call(words).exit_code, 0) << testing::PrintToString(words);
    // A reader that nobody wrote to would wait for ever.
    if (const int end = open(in.file("pipe").c_str(), O_WRONLY | O_NONBLOCK); end >= 0) close(end);
    reader.join();
    EXPECT_NE(text, "") << testing::PrintToString(words);
    EXPECT_TRUE(fs::is_fifo(in.path() / "pipe")) << testing::PrintToString(words);
    EXPECT_EQ(in.list(), before);
  }
}

TEST(Outputs, AFullDeviceIsAnErrorAndStays) {
  const Inputs in;
  fs::create_symlink("/dev/full", in.path() / "full");
  const Words before = in.list();
  for (const Words& words : writers("full")) {
    const Outcome outcome = in.call(words);
    EXPECT_EQ(outcome.exit_code, 74) << testing::PrintToString(words) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("No space left"));
    EXPECT_TRUE(fs::is_character_file(in.path() / "full"));
    EXPECT_EQ(in.list(), before);
  }
}

TEST(Outputs, AWorkingDirectoryThatIsGoneIsNamed) {
  const Inputs in;
  fs::create_directory(in.path() / "gone");
  const std::string command = "cd gone && rmdir ../gone && exec '" + shardscope_path() + "' ";
  for (const char* arguments :
       {"simulate --model gpt2-nano --trace a.sst", "train --model gpt2-nano --data random --steps 1 --trace a.sst"}) {
    fs::create_directory(in.path() / "gone");
    const Outcome outcome = run({"/bin/sh", "-c", command + arguments}, {.directory = in.path()});
    EXPECT_EQ(outcome.exit_code, 73) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("the working directory was removed"));
  }
}

TEST(Inputs, ThatNeverEndAreRefused) {
  const Inputs in;
  const std::vector<Words> all{
      {"simulate", "--model", "/dev/zero"},
      {"simulate", "--config", "/dev/zero"},
      {"simulate", "--model", "gpt2-nano", "--cluster", "/dev/zero"},
      {"search", "--parameters", "/dev/zero", "--world-size", "2"},
      {"inspect", "/dev/zero"},
      {"inspect", "/dev/zero", "--replay-allocator", "pytorch"},
      {"convert", "/dev/zero", "a.json"},
#ifdef WITH_VIEWER
      {"view", "--search", "/dev/zero", "--screenshot", "a.png"},
      {"view", "/dev/zero", "--screenshot", "a.png"},
      {"report", "/dev/zero", "-o", "a.html"},
#endif
  };
  for (const Words& words : all) {
    const Outcome outcome = in.call(words);
    EXPECT_EQ(outcome.exit_code, 65) << testing::PrintToString(words) << outcome.err;
  }
}

TEST(Inputs, PipesThatNobodyWritesToAreRefused) {
  const Inputs in;
  ASSERT_EQ(mkfifo(in.file("pipe").c_str(), 0600), 0);
  fs::create_directory(in.path() / "weights");
  ASSERT_EQ(mkfifo(in.file("weights/model.safetensors.index.json").c_str(), 0600), 0);
  in.write("accelerate.yaml", "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: pipe\n");
  const std::vector<Words> all{
      {"simulate", "--model", "./pipe"},
      {"simulate", "--config", "pipe"},
      {"simulate", "--model", "gpt2-nano", "--cluster", "./pipe"},
      {"simulate", "--model", "gpt2-nano", "--accelerate-config", "accelerate.yaml"},
      {"search", "--parameters", "pipe", "--world-size", "2"},
      {"inspect", "pipe"},
      {"convert", "pipe", "a.json"},
      {"compare", "pipe", "trace.sst"},
      {"validate", "pipe"},
#ifdef WITH_RANKS
      {"train", "--model", "gpt2-nano", "--data", "random", "--steps", "1", "--weights", "weights"},
#endif
#ifdef WITH_VIEWER
      {"view", "--search", "pipe", "--screenshot", "a.png"},
      {"view", "pipe", "--screenshot", "a.png"},
      {"report", "pipe", "-o", "a.html"},
#endif
  };
  // Each waits a while for a writer: all at once.
  std::vector<std::unique_ptr<Program>> programs;
  for (Words words : all) {
    words.insert(words.begin(), shardscope_path());
    programs.push_back(std::make_unique<Program>(words, Surroundings{.directory = in.path()}));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Outcome outcome = programs[i]->wait();
    EXPECT_EQ(outcome.exit_code, 66) << testing::PrintToString(all[i]) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("it is a pipe that nobody writes to")) << testing::PrintToString(all[i]);
  }
}

TEST(Inputs, MayComeThroughAShellsDescriptors) {
  const Inputs in;
  for (const std::string command : {"simulate --model <(cat model.json)", "simulate --model /dev/stdin < model.json",
                                    "inspect <(cat trace.sst)", "inspect /dev/stdin < trace.sst"}) {
    const Outcome outcome =
        run({"/bin/bash", "-c", "'" + shardscope_path() + "' " + command}, {.directory = in.path()});
    EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
  }
}

TEST(Inputs, OfOtherToolsThatBreakOffAreRefusedUnlessAskedFor) {
  const Inputs in;
  ASSERT_EQ(in.call({"convert", "trace.sst", "whole.pickle"}).exit_code, 0);
  const std::string whole = read_file(in.path() / "whole.pickle");
  in.write("cut.pickle", whole.substr(0, whole.size() * 2 / 3));
  std::vector<Words> all{
      {"inspect", "cut.pickle"}, {"inspect", "cut.pickle", "--json"}, {"convert", "cut.pickle", "a.json"}};
#ifdef WITH_VIEWER
  all.push_back({"view", "cut.pickle", "--screenshot", "a.png"});
  all.push_back({"convert", "cut.pickle", "a.png"});
  all.push_back({"report", "cut.pickle", "-o", "a.html"});
#endif
  for (Words words : all) {
    const Outcome refused = in.call(words);
    EXPECT_EQ(refused.exit_code, 65) << testing::PrintToString(words) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("--incomplete"));
    words.emplace_back("--incomplete");
    EXPECT_EQ(in.call(words).exit_code, 0) << testing::PrintToString(words);
  }
}

TEST(Inputs, NamesInThemDoNotCommandTheTerminal) {
  const Inputs in;
  in.write("type.json", "{\"model_type\": \"\\u001b[31mgpt9\", \"vocab_size\": 10}");
  in.write("key.json", "{\"model_type\": \"gpt2\", \"\\u001b]0;title\\u0007\": 1, \"n_layer\": \"\\u202e\"}");
  in.write("a.conf", "st\x1b[31mage = 3\n");
  in.write("list.json", "[{\"name\": \"\\u001b[2Jw\", \"shape\": [4], \"numel\": 5}]");
  in.write(
      "kineto.json",
      "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"\\u001b[31mop\\u009b1m\", \"ts\": 1, \"dur\": 2, \"pid\": 1, "
      "\"tid\": 1}], \"meta\\u001b[5m\": \"x\\u001b[0m\"}");
  ASSERT_EQ(in.call({"convert", "kineto.json", "named.sst"}).exit_code, 0);
  const std::vector<Words> all{
      {"simulate", "--model", "type.json"},
      {"simulate", "--model", "key.json"},
      {"simulate", "--config", "a.conf"},
      {"search", "--parameters", "list.json", "--world-size", "2"},
      {"inspect", "kineto.json"},
      {"inspect", "kineto.json", "--json"},
      {"compare", "named.sst", "named.sst", "--force"},
      {"inspect", "named.sst"},
  };
  for (const Words& words : all) {
    const Outcome outcome = in.call(words);
    const std::string shown = outcome.out + outcome.err;
    EXPECT_EQ(shown.find('\x1b'), std::string::npos) << testing::PrintToString(words) << shown;
    EXPECT_EQ(shown.find("\xc2\x9b"), std::string::npos) << testing::PrintToString(words);
    EXPECT_EQ(shown.find('\a'), std::string::npos) << testing::PrintToString(words);
    EXPECT_EQ(shown.find("\u202e"), std::string::npos) << testing::PrintToString(words);
  }
  EXPECT_THAT(in.call(all[0]).err, HasSubstr("\\x1b[31mgpt9"));
#ifdef WITH_VIEWER
  ASSERT_EQ(in.call({"report", "named.sst", "-o", "report.md"}).exit_code, 0);
  const std::string report = read_file(in.path() / "report.md");
  EXPECT_EQ(report.find("<script>"), std::string::npos);
  EXPECT_EQ(report.find('\x1b'), std::string::npos);
#endif
}

#ifdef WITH_RANKS
TEST(TwoRuns, WithOneTraceEndEachWithAWholeOne) {
  const Inputs in;
  const auto alone = [&](const std::string& trace) {
    return Words{shardscope_path(), "train",   "--model", "model.json", "--data",
                 "text:data.txt",   "--ranks", "2",       "--stage",    "3",
                 "--steps",         "20",      "--trace", trace};
  };
  EXPECT_EQ(run(alone("alone.sst"), {.directory = in.path()}).exit_code, 0);
  const auto spans = [&](const std::string& trace) {
    return json_of(in.call({"inspect", trace, "--json"}))["span_count"].get<std::int64_t>();
  };
  const std::int64_t whole = spans("alone.sst");
  const Words before = in.list();
  Program first(alone("two.sst"), {.directory = in.path()});
  Program second(alone("two.sst"), {.directory = in.path()});
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(second.wait().exit_code, 0);
  EXPECT_EQ(spans("two.sst"), whole);
  EXPECT_EQ(in.list().size(), before.size() + 1);
}
#endif

}  // namespace
}  // namespace shard::test
