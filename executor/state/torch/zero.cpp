// A flat array of each group of parameters, divided among ranks; what lies where in it follows from the parameters'
// shapes.
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "executor/state/safetensors.h"
#include "executor/state/torch/forms.h"

namespace shard::torch {
namespace {

namespace fs = std::filesystem;
using safetensors::in_quotes;

/// DeepSpeed pads a group to a multiple of so many elements of each rank (nccl_start_alignment_factor).
constexpr std::int64_t kAlignment = 2;

/// The files of a folder; ranks are data-parallel ones.
struct Files {
  std::map<std::int64_t, fs::path> optimizer;  ///< by rank
  std::map<std::int64_t, fs::path> model;      ///< by rank; one where all share it
};

/// The number between `before` and `behind`, of the whole name.
std::optional<std::int64_t> number_in(std::string_view name, std::string_view before, std::string_view behind) {
  if (!name.starts_with(before) || !name.ends_with(behind) || name.size() <= before.size() + behind.size())
    return std::nullopt;
  name = name.substr(before.size(), name.size() - before.size() - behind.size());
  std::int64_t n = 0;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), n);
  return fault == std::errc{} && end == name.data() + name.size() && n >= 0 ? std::optional(n) : std::nullopt;
}

Error form_not_read(const fs::path& file, std::string why, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(why), .where = file.string(), .help = std::move(help)};
}

Result<Files> find_files(const fs::path& folder) {
  Files files;
  std::error_code fault;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, fault)) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with("_states.pt")) continue;
    if (name.starts_with("layer_") || name.find("expert") != std::string::npos)
      return form_not_read(entry.path(),
                           name.find("expert") != std::string::npos
                               ? "is of experts that ranks divide among them, which are not read"
                               : "is of a pipeline of layers, which is not read",
                           "DeepSpeed's ds_to_universal.py, and weights saved by save_pretrained()");
    for (const std::string_view type : {"bf16_", "fp16_"})
      if (name.starts_with(type)) name.erase(0, type.size());
    constexpr std::string_view kZero = "zero_pp_rank_", kOptimizer = "_mp_rank_00_optim_states.pt",
                               kModel = "_mp_rank_00_model_states.pt";
    if (const auto rank = number_in(name, kZero, kOptimizer))
      files.optimizer[*rank] = entry.path();
    else if (const auto of = number_in(name, kZero, kModel))
      files.model[*of] = entry.path();
    else if (name == "mp_rank_00_model_states.pt")
      files.model[0] = entry.path();
    else if (name.find("mp_rank_") != std::string::npos)
      return form_not_read(entry.path(), "is of tensor parallelism, whose parts are not put together",
                           "weights saved by the training program in one piece, as safetensors");
  }
  if (files.model.empty())
    return Error{.code = Errc::no_input,
                 .what = "has no mp_rank_00_model_states.pt and none of its ranks",
                 .where = folder.string(),
                 .help = "all files that DeepSpeed's save_checkpoint() wrote, of all hosts"};
  return files;
}

class DeepSpeedReader {
 public:
  DeepSpeedReader(const fs::path& folder, TrainingState& state) : folder_(folder), state_(state) {}

  Result<void> read() {
    const Result<Files> files = find_files(folder_);
    if (!files) return files.error();
    for (const auto& [rank, path] : files->model)
      if (Result<void> opened = open(path, models_); !opened) return opened;
    for (const auto& [rank, path] : files->optimizer)
      if (Result<void> opened = open(path, optimizers_); !opened) return opened;
    const Archive& first = *models_.front();
    if (const auto step = member(first.pickle(), first.root(), "global_steps"))
      if (const auto n = first.pickle().integer(*step); n && *n >= 0) state_.step = n;
    if (const auto shared = member(first.pickle(), first.root(), "shared_params"))
      for (std::span<const Value> p = pairs(first.pickle(), *shared); p.size() >= 2; p = p.subspan(2))
        state_.notes.push_back(std::string(first.pickle().text(p[0])) + " is " +
                               std::string(first.pickle().text(p[1])) + ", and saved once");
    if (optimizers_.empty()) return read_module();
    if (!files->optimizer.contains(0) ||
        files->optimizer.rbegin()->first + 1 != static_cast<std::int64_t>(optimizers_.size()))
      return lacks_ranks(files->optimizer.rbegin()->first + 1);
    if (Result<void> groups = read_groups(); !groups) return groups;
    return read_frozen();
  }

 private:
  using Archives = std::vector<std::shared_ptr<Archive>>;
  /// A flat array that ranks divide among them: of a group of parameters, or of all.
  struct Flat {
    std::vector<std::int64_t> sizes;                                        ///< elements of each rank
    std::vector<std::vector<std::pair<std::int64_t, std::int32_t>>> parts;  ///< of a rank: elements, and the source
  };
  struct Shape {
    std::string name;
    std::vector<std::int64_t> shape;
  };

  static Result<void> open(const fs::path& path, Archives& into) {
    const Result<std::shared_ptr<Archive>> archive = Archive::open(path);
    if (!archive) return archive.error();
    into.push_back(*archive);
    if (into.size() > 32) (*archive)->rest();  // as many files as ranks, at least
    return {};
  }

  Error bad(const Archive& archive, std::string what) const {
    return {.code = Errc::malformed,
            .what = std::move(what),
            .where = archive.where(),
            .help = "all files that DeepSpeed's save_checkpoint() wrote, of all hosts"};
  }
  Error lacks_ranks(std::int64_t ranks) const {
    return {
        .code = Errc::malformed,
        .what = "has optimizer state of " + std::to_string(optimizers_.size()) + " ranks of " + std::to_string(ranks),
        .where = folder_.string(),
        .help = "all files that DeepSpeed's save_checkpoint() wrote, of all hosts"};
  }

  /// Shapes by group, in the order in which parameters lie in the groups.
  Result<std::vector<std::vector<Shape>>> shapes(std::string_view key) const {
    const Archive& archive = *models_.front();
    const Pickle& pickle = archive.pickle();
    std::vector<std::vector<Shape>> groups;
    const auto found = member(pickle, archive.root(), key);
    if (!found || found->kind() == Kind::none) return groups;
    std::vector<Value> dicts;
    if (found->kind() == Kind::list)
      for (const Value each : pickle.items(*found)) dicts.push_back(each);
    else
      dicts.push_back(*found);
    for (const Value dict : dicts) {
      groups.emplace_back();
      for (std::span<const Value> p = pairs(pickle, dict); p.size() >= 2; p = p.subspan(2)) {
        const auto shape = sizes_of(pickle, p[1]);
        if (!shape) return bad(archive, std::string(key) + " has " + kind_text(pickle, p[1]) + " for a shape");
        std::int64_t elements = 1;
        for (const std::int64_t n : *shape)
          if (__builtin_mul_overflow(elements, n, &elements) || elements > kMostElements)
            return bad(archive, std::string(key) + " has a shape of too many elements");
        groups.back().push_back({.name = without_wrappers(pickle.text(p[0])), .shape = *shape});
      }
    }
    return groups;
  }

  /// The stage that the optimizer's state is of.
  static std::int64_t stage_of(const Pickle& pickle, Value state) {
    const auto stage = member(pickle, state, "zero_stage");
    if (!stage) return 1;  // of BF16_Optimizer
    if (const auto n = pickle.integer(*stage)) return *n;
    const auto made = pickle.made(*stage);
    const std::span<const Value> a = made ? pickle.items(made->arguments) : std::span<const Value>();
    return a.empty() ? -1 : pickle.integer(a[0]).value_or(-1);
  }

  Result<void> read_groups() {
    Archive& first = *optimizers_.front();
    const auto state = member(first.pickle(), first.root(), "optimizer_state_dict");
    if (!state) return bad(first, "has no optimizer_state_dict");
    const std::int64_t stage = stage_of(first.pickle(), *state);
    if (stage < 1 || stage > 3) return bad(first, "is of ZeRO stage " + std::to_string(stage));
    state_.form = "DeepSpeed checkpoint, ZeRO stage " + std::to_string(stage);
    if (Result<void> ranks = check_ranks(*state); !ranks) return ranks;
    const Result<std::vector<std::vector<Shape>>> groups = shapes("param_shapes");
    if (!groups) return groups.error();
    if (const auto scaling = member(first.pickle(), *state, "dynamic_loss_scale");
        scaling && first.pickle().integer(*scaling).value_or(0) != 0)
      state_.notes.push_back("the loss scale is not read, and begins anew");
    return stage == 3 ? read_stage_3(*groups) : read_stage_1_2(*groups);
  }

  Result<void> check_ranks(Value state) {
    const Pickle& pickle = optimizers_.front()->pickle();
    const auto count = member(pickle, state, "partition_count");
    if (!count) return {};
    const std::span<const Value> each = list_items(pickle, *count);
    const std::optional<std::int64_t> ranks = pickle.integer(each.empty() ? *count : each[0]);
    if (ranks && *ranks != static_cast<std::int64_t>(optimizers_.size())) return lacks_ranks(*ranks);
    return {};
  }

  /// A part of a flat array, of one rank.
  Result<void> add_part(const std::shared_ptr<Archive>& archive, Value value, const std::string& what, Flat& flat) {
    Result<std::optional<Tensor>> tensor = tensor_of(*archive, value, what);
    if (!tensor) return tensor.error();
    if (!*tensor) return bad(*archive, what + " is " + kind_text(archive->pickle(), value) + ", not a tensor");
    if (!is_read_as_f32((*tensor)->dtype))
      return form_not_read(archive->where(), what + " is " + (*tensor)->dtype + "; F32, F16 and BF16 are read",
                           "a checkpoint of one of these");
    const std::int64_t elements = (*tensor)->elements;
    flat.sizes.back() += elements;
    flat.parts.back().emplace_back(elements, state_.sources.add(archive, std::move(**tensor)));
    return {};
  }

  /// The optimizer's own state of each of its groups: {"state": {NUMBER: {...}}} or a list of these.
  static std::vector<Value> states_by_number(const Pickle& pickle, Value optimizer) {
    const auto numbered = member(pickle, optimizer, "state");
    std::vector<Value> states;
    if (!numbered) {
      for (const Value each : list_items(pickle, optimizer)) states.push_back(each);
      return states;
    }
    for (std::span<const Value> p = pairs(pickle, *numbered); p.size() >= 2; p = p.subspan(2)) states.push_back(p[1]);
    return states;
  }

  static constexpr std::array<std::pair<const char*, Role>, 2> kMoments{
      {{"exp_avg", Role::first_moment}, {"exp_avg_sq", Role::second_moment}}};

  /// Values, first and second moments.
  using Flats = std::array<Flat, 3>;

  /// The moments of a group on a rank, and how many steps they come of.
  Result<void> add_state(const std::shared_ptr<Archive>& archive, Value own, Flats& flats, std::int64_t& steps) {
    const Pickle& pickle = archive->pickle();
    for (std::size_t m = 0; m < 2; ++m)
      if (const auto moment = member(pickle, own, kMoments[m].first))
        if (Result<void> r = add_part(archive, *moment, kMoments[m].first, flats[m + 1]); !r) return r;
    if (const auto step = member(pickle, own, "step")) steps = count_of(*archive, *step).value_or(steps);
    return {};
  }

  /// On every rank, of every value; what is padding of the last rank's values may be left out of them.
  static bool has_moments(const Flats& flats) {
    for (std::size_t m = 1; m < 3; ++m)
      for (std::size_t r = 0; r < flats[0].sizes.size(); ++r)
        if (flats[m].sizes[r] < flats[0].sizes[r]) return false;
    return true;
  }

  Result<void> read_stage_1_2(const std::vector<std::vector<Shape>>& groups) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].empty()) continue;
      Flats flats;
      std::int64_t steps = -1;
      for (const std::shared_ptr<Archive>& archive : optimizers_) {
        for (Flat& flat : flats) flat.sizes.push_back(0), flat.parts.emplace_back();
        const Pickle& pickle = archive->pickle();
        const auto state = member(pickle, archive->root(), "optimizer_state_dict");
        const auto masters = state ? member(pickle, *state, "single_partition_of_fp32_groups") : std::nullopt;
        const std::span<const Value> parts = masters ? list_items(pickle, *masters) : std::span<const Value>();
        if (parts.size() <= g)
          return bad(*archive, "has fp32 values of " + std::to_string(parts.size()) + " groups, and the model " +
                                   std::to_string(groups.size()));
        const std::string group = " of group " + std::to_string(g);
        if (Result<void> r = add_part(archive, parts[g], "fp32" + group, flats[0]); !r) return r;
        const auto base = member(pickle, *state, "base_optimizer_state");
        const std::vector<Value> states = base ? states_by_number(pickle, *base) : std::vector<Value>();
        const Value own = states.size() > g ? states[g] : Value();
        if (Result<void> r = add_state(archive, own, flats, steps); !r) return r;
      }
      if (Result<void> r = place(groups[g], flats[0], Role::weight); !r) return r;
      if (!has_moments(flats)) {
        note_no_moments();
        continue;
      }
      for (std::size_t m = 0; m < 2; ++m)
        if (Result<void> r = place(groups[g], flats[m + 1], kMoments[m].second); !r) return r;
      count(groups[g], steps);
    }
    return {};
  }

  /// Parameters one behind the other in what ranks have one behind the other.
  Result<void> place(const std::vector<Shape>& group, const Flat& flat, Role role) {
    std::int64_t all = 0, wanted = 0;
    for (const std::int64_t size : flat.sizes) all += size;
    for (const Shape& s : group) wanted += elements_of(s.shape);
    const auto ranks = static_cast<std::int64_t>(flat.sizes.size());
    if (all < wanted || all - wanted >= std::max(kAlignment * ranks, ranks * ranks))
      return bad(*optimizers_.front(), std::string(to_string(role)) + " of a group has " + std::to_string(all) +
                                           " elements on all ranks, and its parameters have " + std::to_string(wanted));
    std::int64_t at = 0;
    for (const Shape& s : group) {
      const std::int64_t n = elements_of(s.shape);
      StateTensor tensor{.name = s.name, .role = role, .shape = s.shape, .placed = {n}, .blocks = {}};
      std::int64_t begin = 0;
      for (const auto& parts : flat.parts)
        for (const auto& [size, source] : parts) {
          add_overlap(tensor, at, n, begin, size, source);
          begin += size;
        }
      state_.tensors.push_back(std::move(tensor));
      at += n;
    }
    return {};
  }

  /// What a tensor of elements [at, at + n) has in common with a source of [begin, begin + size).
  static void add_overlap(StateTensor& tensor, std::int64_t at, std::int64_t n, std::int64_t begin, std::int64_t size,
                          std::int32_t source) {
    const std::int64_t from = std::max(at, begin), to = std::min(at + n, begin + size);
    if (from < to)
      tensor.blocks.push_back({.at = {from - at}, .sizes = {to - from}, .source = source, .first = from - begin});
  }

  Result<void> read_stage_3(const std::vector<std::vector<Shape>>& groups) {
    std::vector<Shape> all;
    for (const std::vector<Shape>& group : groups) all.insert(all.end(), group.begin(), group.end());
    Flats flats;
    std::int64_t steps = -1;
    for (const std::shared_ptr<Archive>& archive : optimizers_) {
      for (Flat& flat : flats) flat.sizes.push_back(0), flat.parts.emplace_back();
      const Pickle& pickle = archive->pickle();
      const auto state = member(pickle, archive->root(), "optimizer_state_dict");
      const auto masters = state ? member(pickle, *state, "fp32_flat_groups") : std::nullopt;
      if (!masters) return bad(*archive, "has no fp32_flat_groups");
      for (const Value part : list_items(pickle, *masters))
        if (Result<void> r = add_part(archive, part, "fp32 of a group", flats[0]); !r) return r;
      const auto optimizer = member(pickle, *state, "optimizer_state_dict");
      for (const Value own : optimizer ? states_by_number(pickle, *optimizer) : std::vector<Value>()) {
        if (Result<void> r = add_state(archive, own, flats, steps); !r) return r;
      }
    }
    if (Result<void> r = place_divided(all, flats[0], Role::weight); !r) return r;
    if (!has_moments(flats)) return note_no_moments(), Result<void>();
    for (std::size_t m = 0; m < 2; ++m)
      if (Result<void> r = place_divided(all, flats[m + 1], kMoments[m].second); !r) return r;
    count(all, steps);
    return {};
  }

  /// Each parameter divided among ranks; a rank's parts of them one behind the other.
  Result<void> place_divided(const std::vector<Shape>& all, const Flat& flat, Role role) {
    const auto ranks = static_cast<std::int64_t>(flat.sizes.size());
    std::int64_t wanted = 0;
    for (const Shape& s : all) wanted += (elements_of(s.shape) + ranks - 1) / ranks;
    for (const std::int64_t size : flat.sizes)
      if (size < wanted)
        return bad(*optimizers_.front(), std::string(to_string(role)) + " has " + std::to_string(size) +
                                             " elements on a rank, and its parameters have " + std::to_string(wanted) +
                                             " there");
    std::int64_t at = 0;
    for (const Shape& s : all) {
      const std::int64_t n = elements_of(s.shape), part = (n + ranks - 1) / ranks;
      StateTensor tensor{.name = s.name, .role = role, .shape = s.shape, .placed = {n}, .blocks = {}};
      for (std::int64_t r = 0; r < ranks; ++r) {
        const std::int64_t own = std::clamp<std::int64_t>(n - r * part, 0, part);
        std::int64_t begin = 0;
        for (const auto& [size, source] : flat.parts[static_cast<std::size_t>(r)]) {
          const std::size_t before = tensor.blocks.size();
          add_overlap(tensor, at, own, begin, size, source);
          if (tensor.blocks.size() > before) tensor.blocks.back().at[0] += r * part;
          begin += size;
        }
      }
      state_.tensors.push_back(std::move(tensor));
      at += part;
    }
    return {};
  }

  void note_no_moments() {
    const std::string note = "the optimizer's state is not Adam's (exp_avg, exp_avg_sq), and not read";
    if (std::ranges::find(state_.notes, note) == state_.notes.end()) state_.notes.push_back(note);
  }

  void count(const std::vector<Shape>& group, std::int64_t steps) {
    if (steps < 0) return;
    for (const Shape& s : group) state_.counts.push_back({.name = s.name, .steps = steps});
    if (!state_.step) state_.step = steps;
  }

  /// Parameters that no step changes: whole ones, or each rank's part of them.
  Result<void> read_frozen() {
    const Result<std::vector<std::vector<Shape>>> groups = shapes("frozen_param_shapes");
    if (!groups) return groups.error();
    for (const std::vector<Shape>& group : *groups)
      for (const Shape& s : group) {
        StateTensor tensor{
            .name = s.name, .role = Role::weight, .shape = s.shape, .placed = {elements_of(s.shape)}, .blocks = {}};
        std::int64_t at = 0;
        for (const std::shared_ptr<Archive>& archive : models_) {
          const Pickle& pickle = archive->pickle();
          const auto fragments = member(pickle, archive->root(), "frozen_param_fragments");
          std::optional<Value> own;
          if (fragments)
            for (std::span<const Value> p = pairs(pickle, *fragments); p.size() >= 2; p = p.subspan(2))
              if (without_wrappers(pickle.text(p[0])) == s.name) own = p[1];
          if (!own) return bad(*archive, "has no values of " + in_quotes(s.name) + ", which is frozen");
          Flat flat{.sizes = {0}, .parts = {{}}};
          if (Result<void> r = add_part(archive, *own, in_quotes(s.name), flat); !r) return r;
          add_overlap(tensor, 0, tensor.placed[0], at, flat.sizes[0], flat.parts[0][0].second);
          at += flat.sizes[0];
        }
        state_.tensors.push_back(std::move(tensor));
      }
    return {};
  }

  /// Of a run without ZeRO: the model's own values.
  Result<void> read_module() {
    state_.form = "DeepSpeed checkpoint";
    const std::shared_ptr<Archive>& archive = models_.front();
    const Pickle& pickle = archive->pickle();
    if (member(pickle, archive->root(), "param_shapes").value_or(Value()).kind() != Kind::none)
      return lacks_ranks(
          pickle.integer(member(pickle, archive->root(), "dp_world_size").value_or(Value())).value_or(1));
    state_.notes.push_back("optimizer state of a run without ZeRO is by number, not by name, and not read");
    const auto module = member(pickle, archive->root(), "module");
    if (!module || pairs(pickle, *module).empty()) return bad(*archive, "has no weights of its module");
    return add_saved(archive, state_);
  }

  const fs::path& folder_;
  TrainingState& state_;
  Archives models_, optimizers_;
};

}  // namespace

Result<TrainingState> open_deepspeed(const fs::path& folder) {
  TrainingState state;
  state.path = folder.string();
  if (Result<void> read = DeepSpeedReader(folder, state).read(); !read) return read.error();
  if (Result<void> whole = settle(state); !whole) return whole.error();
  return state;
}

}  // namespace shard::torch
