// Opens the files and reads ranges of them; which tensor is which parameter is weight_names.cpp's.
#include "executor/state/weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/state/stored_floats.h"
#include "executor/state/tensor_file.h"
#include "executor/state/weight_names.h"
#include "traces/base/read_file.h"
#include "traces/base/sha256.h"

namespace shard {
namespace {

namespace fs = std::filesystem;
using safetensors::in_quotes;
using safetensors::IndexEntry;
using safetensors::Tensor;

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr Bytes kLargestIndex{128 << 20};

bool is_index(const fs::path& path) {
  return path.extension() == ".json";
}

/// The file or index that is read for it.
fs::path main_file(const std::string& argument) {
  std::error_code fault;
  const fs::path path(argument);
  if (!fs::is_directory(path, fault)) return path;
  return fs::exists(path / kOneFile, fault) || !fs::exists(path / kIndex, fault) ? path / kOneFile : path / kIndex;
}

Error no_weights_in(const fs::path& folder) {
  std::error_code fault;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, fault))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("pytorch_model") || name.ends_with(".safetensors"))
      return {Errc::no_input, std::string("has neither ") + kOneFile + " nor " + kIndex + "; it has " + in_quotes(name),
              folder.string(),
              name.ends_with(".safetensors") ? "--weights " + entry.path().string()
                                             : "save_pretrained(folder, safe_serialization=True) in transformers"};
  return {Errc::no_input, std::string("has neither ") + kOneFile + " nor " + kIndex, folder.string(),
          "a folder that save_pretrained() wrote, or a safetensors file"};
}

/// Bytes of an element as parameters are stored.
std::int64_t stored_bytes(const std::string& dtype) {
  return safetensors::bits_of(dtype) / 8;
}

/// Every shard that the index names, and whether each holds what the index says of it.
Result<void> open_shards(const fs::path& index, std::vector<TensorFile>& files) {
  const Result<std::string> text = read_file(index, "index of weights", kLargestIndex);
  if (!text) return text.error();
  const Result<std::vector<IndexEntry>> entries = safetensors::parse_index(*text, index.string());
  if (!entries) return entries.error();
  std::map<std::string_view, std::map<std::string_view, bool>> wanted;  // by file and tensor: is it there?
  for (const IndexEntry& e : *entries) wanted[e.file][e.tensor] = false;
  for (auto& [name, tensors] : wanted) {
    Result<TensorFile> file = TensorFile::open(index.parent_path() / name);
    if (!file && file.error().code == Errc::no_input)
      return Error{Errc::malformed,
                   "says that " + in_quotes(name) + " has tensor " + in_quotes(tensors.begin()->first) + ": " +
                       file.error().what,
                   index.string(), "all files of the checkpoint beside the index"};
    if (!file) return file.error();
    for (const Tensor& t : file->tensors()) {
      const auto found = tensors.find(t.name);
      if (found == tensors.end())
        return Error{Errc::malformed,
                     "has tensor " + in_quotes(t.name) + ", which " + index.string() + " does not look for there",
                     file->path().string(), "index and files of one checkpoint"};
      found->second = true;
    }
    for (const auto& [tensor, there] : tensors)
      if (!there)
        return Error{Errc::malformed,
                     "lacks tensor " + in_quotes(tensor) + ", which " + index.string() + " says it has",
                     file->path().string(), "index and files of one checkpoint"};
    files.push_back(std::move(*file));
  }
  return {};
}

}  // namespace

struct Weights::State {
  std::string argument;
  std::vector<TensorFile> files;
  std::vector<fs::path> paths;  ///< of the files, and of the index
  std::vector<FoundTensor> of_parameter;
  std::vector<std::string> notes;
  std::string fingerprint;
  std::size_t tensors = 0;

  [[nodiscard]] const FoundTensor& found(model::ParamId p) const {
    return of_parameter[static_cast<std::size_t>(p.value)];
  }
};

std::vector<fs::path> weights_files(const std::string& argument) {
  const fs::path path = main_file(argument);
  std::vector<fs::path> files{path};
  std::error_code fault;
  if (!is_index(path) || !fs::is_regular_file(path, fault)) return files;  // a pipe is read once
  const Result<std::string> text = read_file(path, "index of weights", kLargestIndex);
  if (!text) return files;
  const Result<std::vector<IndexEntry>> entries = safetensors::parse_index(*text, path.string());
  if (!entries) return files;
  for (const IndexEntry& e : *entries)
    if (const fs::path file = path.parent_path() / e.file; std::ranges::find(files, file) == files.end())
      files.push_back(file);
  return files;
}

Weights::Weights(std::unique_ptr<State> state) : state_(std::move(state)) {}
Weights::Weights(Weights&&) noexcept = default;
Weights& Weights::operator=(Weights&&) noexcept = default;
Weights::~Weights() = default;

Result<Weights> Weights::open(const std::string& argument, const model::Model& model) {
  auto state = std::make_unique<State>();
  state->argument = argument;
  const fs::path main = main_file(argument);
  std::error_code fault;
  if (fs::is_directory(argument, fault) && !fs::exists(main, fault)) return no_weights_in(argument);
  if (is_index(main)) {
    state->paths.push_back(main);
    if (Result<void> opened = open_shards(main, state->files); !opened) return opened.error();
  } else {
    Result<TensorFile> file = TensorFile::open(main);
    if (!file) return file.error();
    state->files.push_back(std::move(*file));
  }
  std::string facts;
  for (const TensorFile& file : state->files) {
    state->paths.push_back(file.path());
    state->tensors += file.tensors().size();
    facts += std::to_string(file.bytes()) + '\n';
    for (const Tensor& t : file.tensors())
      facts += t.name + ' ' + t.dtype + ' ' + safetensors::shape_text(t.shape) + ' ' + std::to_string(t.begin) + '\n';
  }
  state->fingerprint = sha256_hex(facts);
  Result<FoundWeights> found = find_weights(state->files, model, argument);
  if (!found) return found.error();
  state->of_parameter = std::move(found->of_parameter);
  state->notes = std::move(found->notes);
  return Weights(std::move(state));
}

Result<void> Weights::read(model::ParamId param, std::int64_t first, std::span<float> values) const {
  const FoundTensor& at = state_->found(param);
  return read_floats(at.tensor->dtype, first, values, [&](std::int64_t byte, std::span<std::byte> into) {
    return at.file->read(at.tensor->begin + byte, into);
  });
}

Bytes Weights::stored(model::ParamId param, std::int64_t n) const {
  return Bytes{n * stored_bytes(state_->found(param).tensor->dtype)};
}

std::string Weights::tensor_of(model::ParamId param) const {
  return "tensor " + in_quotes(state_->found(param).tensor->name);
}
std::string Weights::file_of(model::ParamId param) const {
  return state_->found(param).file->path().string();
}

std::string Weights::describe() const {
  std::string dtypes;
  for (const char* const dtype : {"F32", "BF16", "F16"})
    if (std::ranges::any_of(state_->of_parameter, [&](const FoundTensor& f) { return f.tensor->dtype == dtype; }))
      dtypes += std::string(dtypes.empty() ? "" : " and ") + dtype;
  const std::size_t files = state_->files.size();
  return state_->argument + ", " + std::to_string(state_->tensors) + " tensors" +
         (files > 1 ? " in " + std::to_string(files) + " files" : "") + ", " + dtypes;
}

const std::vector<std::string>& Weights::notes() const {
  return state_->notes;
}
const std::string& Weights::fingerprint() const {
  return state_->fingerprint;
}
std::size_t Weights::tensors() const {
  return state_->tensors;
}
const std::vector<fs::path>& Weights::files() const {
  return state_->paths;
}

}  // namespace shard
