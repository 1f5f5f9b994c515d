// Files of torch.save that hold a state_dict().
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "executor/state/safetensors.h"
#include "executor/state/torch/forms.h"
#include "traces/base/read_file.h"

namespace shard::torch {
namespace {

using safetensors::in_quotes;

constexpr std::array<std::string_view, 6> kUsual{"model",       "state_dict", "module", "model_state_dict",
                                                 "model_state", "weights"};

/// The dict with the most tensors: the root, or what it has under a usual name.
Value state_dict_of(const Pickle& pickle, Value root, std::string& under) {
  for (const std::string_view name : kUsual)
    if (const auto found = member(pickle, root, name); found && !pairs(pickle, *found).empty())
      return under = name, *found;
  return root;
}

}  // namespace

Result<void> add_saved(const std::shared_ptr<Archive>& archive, TrainingState& state) {
  const Pickle& pickle = archive->pickle();
  std::string under;
  const Value dict = state_dict_of(pickle, archive->root(), under);
  if (pairs(pickle, dict).empty())
    return Error{.code = Errc::contradiction,
                 .what = "holds " + kind_text(pickle, archive->root()) + ", not a state_dict() with weights",
                 .where = archive->where(),
                 .help = "torch.save(model.state_dict(), FILE)"};
  std::size_t others = 0;
  for (std::span<const Value> p = pairs(pickle, dict); p.size() >= 2; p = p.subspan(2)) {
    const std::string name(pickle.text(p[0]));
    Result<std::optional<Tensor>> tensor = tensor_of(*archive, p[1], "tensor " + in_quotes(name));
    if (!tensor) return tensor.error();
    if (!*tensor || !is_read_as_f32((*tensor)->dtype)) {
      ++others;
      continue;
    }
    StateTensor t{.name = without_wrappers(name),
                  .role = Role::weight,
                  .shape = (*tensor)->shape,
                  .placed = (*tensor)->shape,
                  .blocks = {}};
    t.blocks.push_back({.at = std::vector<std::int64_t>(t.shape.size(), 0),
                        .sizes = t.shape,
                        .source = state.sources.add(archive, std::move(**tensor)),
                        .first = 0});
    state.tensors.push_back(std::move(t));
  }
  if (!under.empty() && pairs(pickle, archive->root()).size() > 2)
    state.notes.push_back("weights are what it has under " + in_quotes(under) + "; nothing else of it is read");
  if (others > 0) state.notes.push_back(std::to_string(others) + " entries are no weights, and not read");
  return {};
}

Result<TrainingState> open_saved_file(const std::filesystem::path& file) {
  const Result<std::shared_ptr<Archive>> archive = Archive::open(file);
  if (!archive) return archive.error();
  TrainingState state;
  state.form = "file of torch.save";
  state.path = file.string();
  if (Result<void> added = add_saved(*archive, state); !added) return added.error();
  if (Result<void> whole = settle(state); !whole) return whole.error();
  return state;
}

Result<TrainingState> open_saved_index(const std::filesystem::path& index) {
  constexpr Bytes kLargest{128 << 20};
  const Result<std::string> text = read_file(index, "index of weights", kLargest);
  if (!text) return text.error();
  const Result<std::vector<safetensors::IndexEntry>> entries = safetensors::parse_index(*text, index.string());
  if (!entries) return entries.error();
  TrainingState state;
  state.form = "files of torch.save";
  state.path = index.string();
  std::vector<std::string> files;
  for (const safetensors::IndexEntry& e : *entries)
    if (std::ranges::find(files, e.file) == files.end()) files.push_back(e.file);
  for (const std::string& file : files) {
    const Result<std::shared_ptr<Archive>> archive = Archive::open(index.parent_path() / file);
    if (!archive) return archive.error();
    if (Result<void> added = add_saved(*archive, state); !added) return added.error();
  }
  for (const safetensors::IndexEntry& e : *entries)
    if (std::ranges::none_of(state.tensors, [&](const StateTensor& t) { return t.name == without_wrappers(e.tensor); }))
      return Error{
          .code = Errc::malformed,
          .what = "says that " + in_quotes(e.file) + " has tensor " + in_quotes(e.tensor) + ", which is not there",
          .where = index.string(),
          .help = "index and files of one checkpoint"};
  if (Result<void> whole = settle(state); !whole) return whole.error();
  return state;
}

}  // namespace shard::torch
