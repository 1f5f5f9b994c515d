// Commands in texts for people.
#include "tests/end_to_end/command_lines.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace shard::test {
namespace {

namespace fs = std::filesystem;

/// Cuts the remark off and reads the exit code it promises.
CommandLine without_remark(std::string text) {
  CommandLine line;
  for (const char* mark : {"    (", "  #"}) {
    const std::size_t at = text.find(mark);
    if (at == std::string::npos) continue;
    const std::string remark = text.substr(at);
    if (const std::size_t exit = remark.find("exit "); exit != std::string::npos)
      line.exit_code = std::atoi(remark.c_str() + exit + 5);
    text.resize(at);
  }
  line.text = std::move(text);
  return line;
}

}  // namespace

std::vector<CommandLine> command_lines(const std::string& text) {
  std::vector<CommandLine> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("$ ")) line.erase(0, 2);
    if (!line.starts_with("shardscope ")) continue;
    for (std::string more; line.ends_with('\\') && std::getline(in, more);) {
      line.pop_back();
      line += more;
    }
    lines.push_back(without_remark(line));
  }
  return lines;
}

void make_inputs(const ScratchDirectory& directory) {
  const fs::path data = TEST_DATA;
  fs::copy_file(data / "data/allocator/small.csv", directory.path() / "recording.csv");
  fs::copy_file(data / "fuzz/corpus/snapshot_fuzz/protocol4.pickle", directory.path() / "snapshot.pickle");
  for (const char* name : {"predicted.pickle", "recorded.pickle", "before.pickle", "after.pickle"})
    fs::copy_file(directory.path() / "snapshot.pickle", directory.path() / name);
  fs::copy_file(data / "fuzz/corpus/gzip_fuzz/small.json.gz", directory.path() / "profile.json.gz");
  fs::copy_file(data / "../examples/05_chunk_rules/parameters.json", directory.path() / "params.json");
  for (const auto& [name, stage] : {std::pair{"predicted.sst", "3"}, {"before.sst", "1"}}) {
    const Outcome outcome = shardscope(
        {"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", stage, "--trace", directory.file(name)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  fs::copy_file(directory.path() / "predicted.sst", directory.path() / "measured.sst");
  fs::copy_file(directory.path() / "predicted.sst", directory.path() / "after.sst");
  for (const char* stage : {"2", "3"})
    std::ofstream(directory.path() / ("stage" + std::string(stage) + ".conf")) << "stage = " << stage << "\n";
  std::ofstream(directory.path() / "train.log")
      << "step 12\nRuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; "
         "9.71 GiB "
         "already allocated; 5.69 MiB free; 9.87 GiB reserved in total by PyTorch)\n";
  std::ofstream(directory.path() / "config.json") << R"({"model_type": "llama", "num_hidden_layers": 2})";
  std::ofstream(directory.path() / "ds_config.json")
      << R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})";
}

bool has_pytorch() {
  static const bool kHas = run({"python3", "-c", "import torch; assert torch.version.cuda"}).exit_code == 0;
  return kHas;
}

Outcome run_line(const CommandLine& line, const ScratchDirectory& directory) {
  const char* path = std::getenv("PATH");
  return run({"/bin/bash", "-c", line.text},
             {.directory = directory.path(),
              .environment = {{"PATH", programs_directory() + ":" + (path == nullptr ? "" : path)}}});
}

}  // namespace shard::test
