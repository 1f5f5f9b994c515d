// .metadata says of each tensor which boxes of it are in which bytes of which file; names are paths into what was
// saved.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "executor/state/safetensors.h"
#include "executor/state/torch/forms.h"

namespace shard::torch {
namespace {

using safetensors::in_quotes;

constexpr std::array<std::pair<std::string_view, Role>, 2> kMoments{
    {{".exp_avg", Role::first_moment}, {".exp_avg_sq", Role::second_moment}}};

/// Where a stretch of bytes is.
struct StoredAt {
  std::string file;
  std::int64_t offset = 0, length = 0;
};

/// What a name stands for.
struct Meaning {
  enum class What : std::uint8_t { weight, moment, count, other } what = What::other;
  Role role = Role::weight;
  std::string parameter;
  std::string root;  ///< of a weight: under which name the model was saved; may be empty
};

/// Of the path's components: ("model", NAME) and (NAME) are weights, ("optim", "state", NAME, "exp_avg") and
/// ("optimizer", "state.NAME.exp_avg") state of the optimizer.
Meaning meaning_of(const std::vector<std::string>& path) {
  std::string text;
  std::size_t state_end = std::string::npos;  // behind "state." in `text`
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (state_end == std::string::npos && path[i].starts_with("state.")) state_end = text.size() + 6;
    if (state_end == std::string::npos && path[i] == "state" && i + 1 < path.size()) state_end = text.size() + 6;
    text += path[i] + (i + 1 < path.size() ? "." : "");
  }
  Meaning m;
  if (state_end != std::string::npos) {
    const std::string_view rest = std::string_view(text).substr(state_end);
    for (const auto& [end, role] : kMoments)
      if (rest.ends_with(end)) {
        m.what = Meaning::What::moment;
        m.role = role;
        m.parameter = without_wrappers(rest.substr(0, rest.size() - end.size()));
      }
    if (constexpr std::string_view kStep = ".step"; rest.ends_with(kStep)) {
      m.what = Meaning::What::count;
      m.parameter = without_wrappers(rest.substr(0, rest.size() - kStep.size()));
    }
    return m;
  }
  if (path.empty() || text.find("param_groups.") != std::string::npos) return m;
  m.what = Meaning::What::weight;
  m.parameter = without_wrappers(path.back());
  for (std::size_t i = 0; i + 1 < path.size(); ++i) m.root += (i == 0 ? "" : ".") + path[i];
  return m;
}

class MetadataReader {
 public:
  MetadataReader(const Pickle& pickle, const std::filesystem::path& folder, TrainingState& state)
      : pickle_(pickle), folder_(folder), state_(state) {}

  Result<void> read() {
    const auto made = pickle_.made(pickle_.result());
    if (!made || pickle_.name(made->callable) != "torch.distributed.checkpoint.metadata.Metadata")
      return bad("is " + kind_text(pickle_, pickle_.result()) + ", not the metadata of a checkpoint");
    if (Result<void> stored = read_storage(); !stored) return stored;
    const auto all = member(pickle_, pickle_.result(), "state_dict_metadata");
    if (!all || all->kind() != Kind::dict) return bad("has no state_dict_metadata");
    const auto paths = member(pickle_, pickle_.result(), "planner_data");
    if (paths)
      for (std::span<const Value> p = pickle_.items(*paths); p.size() >= 2; p = p.subspan(2))
        paths_[pickle_.text(p[0])] = p[1];
    for (std::span<const Value> p = pickle_.items(*all); p.size() >= 2; p = p.subspan(2))
      if (Result<void> added = add(pickle_.text(p[0]), p[1]); !added) return added;
    choose_root();
    if (unnamed_ > 0)
      state_.notes.push_back("optimizer state of " + std::to_string(unnamed_) +
                             " tensors is by number, not by name, and not read: "
                             "torch.distributed.checkpoint.state_dict.get_optimizer_state_dict() saves names");
    if (others_ > 0)
      state_.notes.push_back(std::to_string(others_) + " entries are neither weights nor Adam's state, and not read");
    return {};
  }

 private:
  Error bad(std::string what) const {
    return {.code = Errc::malformed,
            .what = std::move(what),
            .where = (folder_ / ".metadata").string(),
            .help = "the folder as torch.distributed.checkpoint wrote it"};
  }

  /// Bytes by name and box.
  Result<void> read_storage() {
    const auto all = member(pickle_, pickle_.result(), "storage_data");
    if (!all || all->kind() != Kind::dict) return bad("has no storage_data");
    for (std::span<const Value> p = pickle_.items(*all); p.size() >= 2; p = p.subspan(2)) {
      const auto name = member(pickle_, p[0], "fqn");
      const auto file = member(pickle_, p[1], "relative_path");
      const auto offset = member(pickle_, p[1], "offset"), length = member(pickle_, p[1], "length");
      if (!name || !file || !offset || !length)
        return bad("says where bytes are by " + kind_text(pickle_, p[1]) + ", which is not read");
      const std::string where(pickle_.text(*name));
      if (const auto how = member(pickle_, p[1], "transform_descriptors"); how && !list_items(pickle_, *how).empty())
        return Error{.code = Errc::contradiction,
                     .what = "tensor " + in_quotes(where) + " is stored through an extension (" +
                             std::string(pickle_.text(list_items(pickle_, *how)[0])) + "), which is not read",
                     .where = (folder_ / ".metadata").string(),
                     .help = "a checkpoint saved without extensions of the file system's writer"};
      const std::string path(pickle_.text(*file));
      if (path.empty() || path.starts_with('/') || path.find("..") != std::string::npos)
        return bad("says that bytes are in " + in_quotes(path) + ", which is not in the folder");
      std::vector<std::int64_t> box;
      if (const auto at = member(pickle_, p[0], "offset"))
        if (const auto sizes = sizes_of(pickle_, *at)) box = *sizes;
      stored_[where][box] = {.file = path,
                             .offset = pickle_.integer(*offset).value_or(-1),
                             .length = pickle_.integer(*length).value_or(-1)};
    }
    return {};
  }

  std::vector<std::string> path_of(std::string_view name) const {
    const auto found = paths_.find(name);
    std::vector<std::string> path;
    if (found != paths_.end())
      for (const Value each : list_items(pickle_, found->second))
        path.push_back(each.kind() == Kind::string ? std::string(pickle_.text(each))
                                                   : std::to_string(pickle_.integer(each).value_or(0)));
    if (path.empty()) path.emplace_back(name);
    return path;
  }

  const StoredAt* stored(std::string_view name, const std::vector<std::int64_t>& box) const {
    const auto boxes = stored_.find(name);
    if (boxes == stored_.end()) return nullptr;
    const auto found = boxes->second.find(box);
    return found == boxes->second.end() ? nullptr : &found->second;
  }

  Result<void> add(std::string_view name, Value described) {
    const Meaning m = meaning_of(path_of(name));
    const auto size = member(pickle_, described, "size");
    const auto chunks = member(pickle_, described, "chunks");
    const bool numbered = std::ranges::all_of(m.parameter, [](char c) { return c >= '0' && c <= '9'; });
    if ((m.what == Meaning::What::moment || m.what == Meaning::What::count) && numbered)
      return m.what == Meaning::What::moment ? (void)++unnamed_ : void(), Result<void>();
    if (m.what == Meaning::What::count) return add_count(name, m.parameter, size.has_value());
    if (!size || !chunks || m.what == Meaning::What::other) return ++others_, Result<void>();
    const auto shape = sizes_of(pickle_, *size);
    if (!shape) return bad("gives tensor " + in_quotes(name) + " no shape");
    if (m.what == Meaning::What::weight && !is_read_as_f32(dtype_of(described))) return ++others_, Result<void>();
    StateTensor tensor{.name = m.parameter, .role = m.role, .shape = *shape, .placed = *shape, .blocks = {}};
    std::int64_t elements = 1;
    for (const std::int64_t n : *shape)
      if (__builtin_mul_overflow(elements, n, &elements) || elements > kMostElements)
        return bad("gives tensor " + in_quotes(name) + " no size");
    for (const Value chunk : list_items(pickle_, *chunks)) {
      const auto at = member(pickle_, chunk, "offsets"), sizes = member(pickle_, chunk, "sizes");
      const auto first = at ? sizes_of(pickle_, *at) : std::nullopt;
      const auto extent = sizes ? sizes_of(pickle_, *sizes) : std::nullopt;
      const StoredAt* const where = first ? stored(name, *first) : nullptr;
      if (!extent || where == nullptr) return bad("does not say where all of tensor " + in_quotes(name) + " is");
      tensor.blocks.push_back({.at = *first,
                               .sizes = *extent,
                               .source = state_.sources.add(folder_ / where->file, where->offset, where->length,
                                                            *extent, "tensor " + in_quotes(name)),
                               .first = 0});
    }
    if (m.what == Meaning::What::weight) root_of_.emplace_back(state_.tensors.size(), m.root);
    state_.tensors.push_back(std::move(tensor));
    return {};
  }

  Result<void> add_count(std::string_view name, const std::string& parameter, bool tensor) {
    const StoredAt* where = stored(name, {});
    if (where == nullptr) return bad("does not say where " + in_quotes(name) + " is");
    const Result<std::int64_t> steps = state_.sources.count(state_.sources.add(
        folder_ / where->file, where->offset, where->length, {}, (tensor ? "tensor " : "entry ") + in_quotes(name)));
    if (!steps) return steps.error();
    if (*steps < 0) return bad("has a count of steps below 0");
    state_.counts.push_back({.name = parameter, .steps = *steps});
    state_.step = std::max(state_.step.value_or(0), *steps);
    return {};
  }

  std::string dtype_of(Value described) const {
    const auto properties = member(pickle_, described, "properties");
    const auto made = properties ? pickle_.made(*properties) : std::nullopt;
    if (!made) return {};
    const auto named = member(pickle_, *properties, "dtype");
    // TensorProperties gives its state as a tuple, the type first.
    const std::span<const Value> tuple = list_items(pickle_, made->state);
    const std::string_view dtype = named ? pickle_.name(*named) : tuple.empty() ? "" : pickle_.name(tuple[0]);
    return dtype == "torch.float32"    ? "F32"
           : dtype == "torch.bfloat16" ? "BF16"
           : dtype == "torch.float16"  ? "F16"
                                       : "";
  }

  /// Where weights were saved under several names (a model and its average), the model's count.
  void choose_root() {
    std::map<std::string, std::size_t> weights;
    for (const auto& [tensor, root] : root_of_) weights[root] += 1;
    if (weights.size() < 2) return;
    for (const std::string_view usual : {"model", "state_dict", "module", ""}) {
      if (!weights.contains(std::string(usual))) continue;
      std::vector<std::size_t> away;
      for (const auto& [tensor, root] : root_of_)
        if (root != usual) away.push_back(tensor);
      for (std::size_t i = away.size(); i-- > 0;)
        state_.tensors.erase(state_.tensors.begin() + static_cast<std::ptrdiff_t>(away[i]));
      state_.notes.push_back("weights are those under " + in_quotes(usual) + "; " + std::to_string(away.size()) +
                             " tensors under other names are not read");
      return;
    }
  }

  const Pickle& pickle_;
  const std::filesystem::path& folder_;
  TrainingState& state_;
  std::map<std::string, std::map<std::vector<std::int64_t>, StoredAt>, std::less<>> stored_;
  std::map<std::string_view, Value> paths_;
  std::vector<std::pair<std::size_t, std::string>> root_of_;
  std::size_t unnamed_ = 0, others_ = 0;
};

}  // namespace

Result<void> read_metadata(import::ByteSource& source, const std::filesystem::path& folder, TrainingState& state) {
  Pickle pickle(source, Pickle::Objects::kept);
  if (!pickle.run())
    return Error{.code = Errc::malformed,
                 .what = pickle.error() + ", at its byte " + std::to_string(pickle.at()),
                 .where = (folder / ".metadata").string(),
                 .help = "the folder as torch.distributed.checkpoint wrote it"};
  return MetadataReader(pickle, folder, state).read();
}

Result<TrainingState> open_distributed(const std::filesystem::path& folder) {
  Result<import::ByteSource> source = import::ByteSource::open(folder / ".metadata");
  if (!source) return source.error();
  TrainingState state;
  state.form = "PyTorch Distributed Checkpoint";
  state.path = folder.string();
  if (Result<void> read = read_metadata(*source, folder, state); !read) return read.error();
  if (Result<void> whole = settle(state); !whole) return whole.error();
  return state;
}

}  // namespace shard::torch
