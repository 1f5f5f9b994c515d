// Are checkpoints of PyTorch, FSDP and DeepSpeed read to the bit, nothing in them executed, and the rest refused by
// name? The files and the values to be right about are those libraries' own: torch_files/README.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "executor/state/checkpoint/directory.h"
#include "executor/state/checkpoint/reader.h"
#include "executor/state/tensor_file.h"
#include "executor/state/torch/convert.h"
#include "executor/state/torch/forms.h"
#include "executor/state/torch/open.h"
#include "tests/state/files.h"
#include "tests/state/zip_of.h"

namespace shard {
namespace {

namespace fs = std::filesystem;
using test::WeightsFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const fs::path kFiles = TORCH_FILES;

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

Result<fs::path> converted(const fs::path& from, const fs::path& into) {
  Result<torch::TrainingState> state = torch::open(from);
  if (!state) return state.error();
  return torch::convert(*state, {.folder = into, .step = state->step.value_or(0), .config = {}});
}

class Form : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(TorchCheckpoints, Form,
                         testing::Values("dcp", "flat", "mesh", "plain", "zero1", "zero2", "zero3", "zero1-bf16", "zero3-bf16"),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(Form, GivesTheValuesThatItsLibraryGives) {
  const WeightsFolder folder("torch_form");
  const Result<fs::path> path = converted(kFiles / GetParam(), folder.path());
  ASSERT_TRUE(path) << path.error().what;
  const Result<checkpoint::Reader> reader = checkpoint::Reader::open(*path);
  ASSERT_TRUE(reader) << reader.error().what;
  ASSERT_TRUE(reader->verify());
  EXPECT_EQ(reader->manifest().step, std::string(GetParam()) == "plain" ? 0 : 3);
  const Result<TensorFile> expected = TensorFile::open(kFiles / (std::string(GetParam()) + ".safetensors"));
  ASSERT_TRUE(expected) << expected.error().what;
  EXPECT_EQ(expected->tensors().size(), std::string(GetParam()) == "plain" ? 16U : 64U);
  for (const safetensors::Tensor& tensor : expected->tensors()) {
    const auto number = reader->find(tensor.name);
    ASSERT_TRUE(number) << tensor.name;
    EXPECT_EQ(reader->tensor(*number).shape, tensor.shape) << tensor.name;
    std::vector<std::byte> want(static_cast<std::size_t>(tensor.end - tensor.begin)), got(want.size());
    ASSERT_TRUE(expected->read(tensor.begin, want));
    ASSERT_TRUE(reader->read(*number, 0, got));
    EXPECT_EQ(got, want) << tensor.name;
  }
}

/// A copy of the folder, to be damaged.
void copy_of(const char* kind, const fs::path& into) {
  fs::copy(kFiles / kind, into, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
}

std::string refusal(const fs::path& path) {
  const WeightsFolder into("torch_refused");
  const Result<fs::path> refused = converted(path, into.path() / "run");
  if (refused) return "";
  EXPECT_FALSE(fs::exists(into.path() / "run")) << "a refused import leaves nothing";
  EXPECT_FALSE(refused.error().help.empty());
  return std::string(to_string(refused.error().code)) + ": " + refused.error().where + ": " + refused.error().what;
}

TEST(TorchCheckpoints, ARankThatIsMissingIsNamed) {
  const WeightsFolder folder("torch_missing");
  copy_of("zero2", folder.path());
  fs::remove(folder.path() / "global_step3/zero_pp_rank_1_mp_rank_00_optim_states.pt");
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("malformed"), HasSubstr("1 ranks of 2")));
  const WeightsFolder pieces("torch_pieces");
  copy_of("dcp", pieces.path());
  fs::remove(pieces.path() / "__1_0.distcp");
  EXPECT_THAT(refusal(pieces.path()), AllOf(HasSubstr("no input"), HasSubstr("__1_0.distcp")));
}

TEST(TorchCheckpoints, OtherParallelismIsRefusedByName) {
  const WeightsFolder folder("torch_parallel");
  for (const auto& [file, why] : {std::pair{"mp_rank_01_model_states.pt", "tensor parallelism"},
                                  {"layer_00-model_00-model_states.pt", "pipeline"},
                                  {"layer_0_expert_0_mp_rank_00_model_states.pt", "experts"}}) {
    copy_of("zero1", folder.path());
    folder.write(std::string("global_step3/") + file, "x");
    EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("contradiction"), HasSubstr(why), HasSubstr(file)));
    fs::remove(folder.path() / "global_step3" / file);
  }
}

/// A file of torch.save with that pickle and a storage "0" of `floats` zeros.
std::string saved(const std::string& pickle, std::size_t floats = 4) {
  return test::zip_of({{"x/data.pkl", pickle}, {"x/byteorder", "little"}, {"x/data/0", std::string(4 * floats, '\0')}});
}

const std::string kStorage = "(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI4\ntQ";
/// {"w": torch._utils._rebuild_tensor_v2(storage, first, shape, strides, False, OrderedDict())}, protocol 0 with
/// BINPERSID.
std::string tensor_pickle(const std::string& first, const std::string& shape, const std::string& strides) {
  return "(dVw\nctorch._utils\n_rebuild_tensor_v2\n(" + kStorage + "I" + first + "\n" + shape + strides +
         "I00\nccollections\nOrderedDict\n)RtRs.";
}

TEST(TorchCheckpoints, WhatCodeWouldHaveToMakeIsRefusedAndNotRun) {
  const WeightsFolder folder("torch_code");
  const std::string marker = (folder.path() / "ran").string();
  folder.write("evil.pt", saved("(dVw\ncposix\nsystem\n(Vtouch " + marker + "\ntRs."));
  EXPECT_THAT(refusal(folder.path() / "evil.pt"), AllOf(HasSubstr("contradiction"), HasSubstr("'posix.system'"),
                                                        HasSubstr("tensor 'w'"), HasSubstr("evil.pt")));
  EXPECT_FALSE(fs::exists(marker));
  folder.write("quantized.pt", saved("(dVw\nctorch._utils\n_rebuild_qtensor\n(" + kStorage + "I0\ntRs."));
  EXPECT_THAT(refusal(folder.path() / "quantized.pt"), HasSubstr("'torch._utils._rebuild_qtensor'"));
  folder.write("module.pt", saved("c__main__\nNet\n)R."));
  EXPECT_THAT(refusal(folder.path() / "module.pt"), HasSubstr("an object of '__main__.Net', not a state_dict()"));
}

TEST(TorchCheckpoints, OtherObjectsBesideTheWeightsDoNotMatter) {
  const WeightsFolder folder("torch_beside");
  std::string model = tensor_pickle("0", "(I2\nI2\nt", "(I2\nI1\nt");
  model.pop_back();  // the end mark
  folder.write("a.pt", saved("(dVargs\ncargparse\nNamespace\n)R(dVlr\nF0.1\nsbsVmodel\n" + model + "s."));
  EXPECT_EQ(refusal(folder.path() / "a.pt"), "");
}

TEST(TorchCheckpoints, ViewsAreReadAsTheyLie) {
  const WeightsFolder folder("torch_views");
  std::string storage;
  for (int i = 0; i < 12; ++i) {
    const auto value = static_cast<float>(i);
    storage.append(reinterpret_cast<const char*>(&value), 4);
  }
  // Rows of three of a 3 x 4 array, from its second element on, transposed.
  folder.write("t.pt",
               test::zip_of({{"x/data.pkl", tensor_pickle("1", "(I3\nI3\nt", "(I1\nI4\nt")}, {"x/data/0", storage}}));
  Result<torch::TrainingState> state = torch::open(folder.path() / "t.pt");
  ASSERT_TRUE(state) << state.error().what;
  std::vector<float> got;
  ASSERT_TRUE(torch::for_each_value(*state, state->tensors.front(), [&](std::int64_t, std::span<const float> values) {
    got.insert(got.end(), values.begin(), values.end());
    return Result<void>();
  }));
  EXPECT_THAT(got, testing::ElementsAre(1, 5, 9, 2, 6, 10, 3, 7, 11));
}

TEST(TorchCheckpoints, AViewThatItsStorageDoesNotHoldIsRefused) {
  const WeightsFolder folder("torch_views");
  const std::string square = "(I2\nI2\nt", rows = "(I2\nI1\nt";
  for (const std::string& pickle :
       {tensor_pickle("1", square, rows), tensor_pickle("-1", square, rows), tensor_pickle("0", "(I5\nt", "(I1\nt"),
        tensor_pickle("0", "(I4611686018427387904\nt", "(I0\nt"), tensor_pickle("0", "(I2\nI2\nt", "(I1\nt"),
        tensor_pickle("0", "(I2\nt", "(I4611686018427387904\nt"), tensor_pickle("0", "(I-1\nt", "(I1\nt")}) {
    folder.write("v.pt", saved(pickle));
    EXPECT_THAT(refusal(folder.path() / "v.pt"), HasSubstr("malformed")) << pickle;
  }
}

TEST(TorchCheckpoints, OtherFilesSayWhatTheyAre) {
  const WeightsFolder folder("torch_other");
  folder.write("old.pt", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
  EXPECT_THAT(refusal(folder.path() / "old.pt"), HasSubstr("before PyTorch 1.6"));
  folder.write("text.pt", "hello, world");
  EXPECT_THAT(refusal(folder.path() / "text.pt"), HasSubstr("is no file of torch.save"));
  folder.write("empty.pt", "");
  EXPECT_THAT(refusal(folder.path() / "empty.pt"), HasSubstr("is empty"));
  folder.write("script.pt", test::zip_of({{"x/data.pkl", "(d."}, {"x/constants.pkl", "(t."}}));
  EXPECT_THAT(refusal(folder.path() / "script.pt"), HasSubstr("TorchScript"));
  folder.write("big.pt", test::zip_of({{"x/data.pkl", "(d."}, {"x/byteorder", "big"}}));
  EXPECT_THAT(refusal(folder.path() / "big.pt"), HasSubstr("byte order is 'big'"));
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("no input"), HasSubstr(".metadata")));
  EXPECT_THAT(refusal(folder.path() / "absent"), HasSubstr("no such file"));
  folder.write("latest", "global_step9\n");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("'global_step9', which is not there"));
}

TEST(TorchCheckpoints, BytesThatAreNotWhatWasSavedAreNoticed) {
  const WeightsFolder folder("torch_bits");
  std::mt19937 random(7);
  const std::string whole = bytes_of(kFiles / "plain/pytorch_model.bin");
  const Result<torch::TrainingState> right = torch::open(kFiles / "plain");
  ASSERT_TRUE(right);
  int noticed = 0;
  for (int i = 0; i < 300; ++i) {
    // One bit of a storage, which the zip's checksum is of.
    std::string bytes = whole;
    const test::ZipEntries entries = test::entries_of(whole);
    const auto entry = entries.find("pytorch_model/data/" + std::to_string(random() % 16));
    ASSERT_NE(entry, entries.end());
    const std::size_t at = whole.find(entry->second);
    bytes[at + random() % entry->second.size()] ^= static_cast<char>(1 << (random() % 8));
    folder.write("x.bin", bytes);
    noticed += refusal(folder.path() / "x.bin").empty() ? 0 : 1;
  }
  EXPECT_EQ(noticed, 300);
}

/// Everything that a reader may say of a damaged checkpoint.
void expect_a_word(const fs::path& path, const fs::path& into) {
  const Result<fs::path> read = converted(path, into);
  if (read) return;
  const Error& error = read.error();
  EXPECT_TRUE(error.code == Errc::malformed || error.code == Errc::contradiction || error.code == Errc::no_input ||
              error.code == Errc::cannot_create)
      << to_string(error.code) << ' ' << error.what;
  EXPECT_FALSE(error.what.empty() || error.where.empty() || error.help.empty());
}

TEST(TorchCheckpoints, NoDamagedPickleCrashesAReader) {
  const WeightsFolder folder("torch_damage", test::memory_directory());
  std::mt19937 random(11);
  for (const char* const kind : {"zero1", "zero3", "dcp"}) {
    const fs::path copy = folder.path() / kind;
    copy_of(kind, copy);
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(copy))
      if (entry.path().extension() == ".pt" || entry.path().filename() == ".metadata") files.push_back(entry.path());
    for (int i = 0; i < 400; ++i) {
      const fs::path& file = files[random() % files.size()];
      const std::string whole = bytes_of(file);
      const bool zip = file.extension() == ".pt";
      test::ZipEntries entries = zip ? test::entries_of(whole) : test::ZipEntries{{"data.pkl", whole}};
      for (auto& [name, pickle] : entries) {
        if (!name.ends_with("data.pkl")) continue;
        for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
          const std::size_t at = random() % pickle.size();
          if (random() % 3 == 0)
            pickle.erase(at, random() % 8);
          else
            pickle[at] = static_cast<char>(random());
        }
      }
      std::ofstream(file, std::ios::binary) << (zip ? test::zip_of(entries) : entries.begin()->second);
      expect_a_word(copy, folder.path() / "run");
      fs::remove_all(folder.path() / "run");
      std::ofstream(file, std::ios::binary) << whole;
    }
  }
}

TEST(TorchCheckpoints, NoTruncatedFileIsTakenForWhole) {
  const WeightsFolder folder("torch_cut", test::memory_directory());
  const std::string whole = bytes_of(kFiles / "plain/pytorch_model.bin");
  for (std::size_t n = 0; n < whole.size(); n += 37) {
    folder.write("x.bin", std::string_view(whole).substr(0, n));
    EXPECT_NE(refusal(folder.path() / "x.bin"), "") << n << " bytes of " << whole.size();
  }
}

TEST(TorchCheckpoints, NamesLoseWhatWrappersAdd) {
  EXPECT_EQ(torch::without_wrappers("_orig_mod.h.0._checkpoint_wrapped_module.ln.weight"), "h.0.ln.weight");
  EXPECT_EQ(torch::without_wrappers("_fsdp_wrapped_module.a._fsdp_wrapped_module.b"), "a.b");
  torch::TrainingState state;
  for (const char* const name : {"module.a", "module.b"})
    state.tensors.push_back({.name = name,
                             .role = torch::Role::weight,
                             .shape = {2},
                             .placed = {2},
                             .blocks = {{.at = {0}, .sizes = {2}, .source = 0, .first = 0}}});
  ASSERT_TRUE(torch::settle(state));
  EXPECT_EQ(state.tensors[0].name, "a");
}

TEST(TorchCheckpoints, PartsThatDoNotMakeUpATensorAreRefused) {
  const auto settled = [](std::vector<torch::Block> blocks) {
    torch::TrainingState state;
    state.path = "folder";
    state.tensors.push_back(
        {.name = "w", .role = torch::Role::weight, .shape = {4, 6}, .placed = {4, 6}, .blocks = std::move(blocks)});
    const Result<void> whole = torch::settle(state);
    return whole ? std::string() : whole.error().what;
  };
  const torch::Block left{.at = {0, 0}, .sizes = {4, 2}, .source = 0, .first = 0};
  const torch::Block right{.at = {0, 2}, .sizes = {4, 4}, .source = 0, .first = 0};
  EXPECT_EQ(settled({left, right}), "");
  EXPECT_EQ(settled({right, left, {.at = {2, 2}, .sizes = {0, 4}, .source = 0, .first = 0}}), "");
  EXPECT_THAT(settled({left}), HasSubstr("parts of 8 elements of 24"));
  EXPECT_THAT(settled({left, {.at = {0, 1}, .sizes = {4, 4}, .source = 0, .first = 0}}), HasSubstr("two parts"));
  EXPECT_THAT(settled({left, {.at = {0, 3}, .sizes = {4, 4}, .source = 0, .first = 0}}), HasSubstr("outside"));
  EXPECT_THAT(settled({left, {.at = {0}, .sizes = {16}, .source = 0, .first = 0}}), HasSubstr("outside"));
}

TEST(TorchCheckpoints, FormsAreToldByTheirFiles) {
  EXPECT_THAT(torch::form_of(kFiles / "dcp").value_or(""), HasSubstr("Distributed Checkpoint"));
  EXPECT_THAT(torch::form_of(kFiles / "zero3").value_or(""), HasSubstr("DeepSpeed"));
  EXPECT_THAT(torch::form_of(kFiles / "zero3/global_step3").value_or(""), HasSubstr("DeepSpeed"));
  EXPECT_THAT(torch::form_of(kFiles / "plain").value_or(""), HasSubstr("torch.save"));
  EXPECT_FALSE(torch::form_of(kFiles));
  EXPECT_FALSE(torch::form_of(kFiles / "dcp.safetensors"));
}

}  // namespace
}  // namespace shard
