// The files are a checkpoint's (checkpoint/draft.h, part.h) without its state and its manifest.
#include "executor/state/weights_writer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/numeric/half.h"
#include "executor/state/checkpoint/directory.h"
#include "executor/state/checkpoint/draft.h"
#include "executor/state/checkpoint/io.h"
#include "executor/state/checkpoint/names.h"
#include "executor/state/checkpoint/part.h"
#include "executor/state/safetensors.h"
#include "traces/base/file_place.h"

namespace shard {
namespace {

namespace fs = std::filesystem;
using Content = plan::Digest::Content;

constexpr const char* kConfigFile = "config.json";

/// Whole parameters, in the model's order.
std::vector<checkpoint::TensorSpec> tensors_of(const model::Model& model, Dtype stored) {
  std::vector<checkpoint::TensorSpec> tensors;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const bool cut = model.split.degree > 1 && model.split.parameters[p].cut();
    tensors.push_back({.name = model.parameters[p].name,
                       .dtype = safetensors::dtype_word(stored),
                       .shape = cut ? model.split.parameters[p].whole : model.parameters[p].shape});
  }
  return tensors;
}

/// model.safetensors and what lay_out() calls files of more than one.
bool is_weights_file(const std::string& name) {
  const std::string stem = checkpoint::kWeightsStem;
  if (name == stem + ".safetensors") return true;
  const std::string shape = stem + "-00000-of-00000.safetensors";
  return name.size() == shape.size() && std::ranges::equal(name, shape, [](char is, char wanted) {
           return wanted == '0' ? is >= '0' && is <= '9' : is == wanted;
         });
}

/// Of a file in the hidden directory: what it is to be called.
Error named(Error error) {
  const fs::path file(error.where);
  const fs::path hidden = file.parent_path();
  if (const auto is = checkpoint::parse_directory_name(hidden.filename().string());
      is && is->kind == checkpoint::DirectoryKind::partial)
    error.where = (hidden.parent_path() / file.filename()).string();
  return error;
}

}  // namespace

struct WeightsWriter::State {
  SavedWeights what;
  const plan::Plan* plan = nullptr;
  std::int32_t tensor_rank = 0;
  checkpoint::Layout layout;
  fs::path draft_path;
  std::optional<checkpoint::Draft> draft;  ///< of the first rank
  std::optional<checkpoint::Part> part;
  std::optional<Error> fault;  ///< the first of this part's

  void write(std::int32_t tensor, std::int64_t element, std::span<const std::byte> bytes) {
    if (fault) return;
    if (Result<void> r = part->write(tensor, element * bytes_per_element(what.stored), bytes); !r)
      fault = named(r.error());
  }
  /// Elements of a parameter, from number `first` of the whole one on, as `stored`.
  template <class From>
  void convert(std::int32_t tensor, std::int64_t first, std::span<const From> from) {
    std::array<float, 4096> wide;
    std::array<std::uint16_t, 4096> narrow;
    for (std::size_t done = 0; done < from.size();) {
      const std::size_t now = std::min(wide.size(), from.size() - done);
      const std::int64_t at = first + static_cast<std::int64_t>(done);
      for (std::size_t i = 0; i < now; ++i) wide[i] = to_f32(from[done + i]);
      if (what.stored == Dtype::f32) {
        write(tensor, at, std::as_bytes(std::span(wide).first(now)));
      } else {
        for (std::size_t i = 0; i < now; ++i)
          narrow[i] = what.stored == Dtype::bf16 ? to_bf16(wide[i]).bits : to_f16(wide[i]).bits;
        write(tensor, at, std::as_bytes(std::span(narrow).first(now)));
      }
      done += now;
    }
  }
  /// What this rank has of a parameter.
  template <class From>
  void take(model::ParamId param, std::span<const std::byte> elements) {
    const model::TensorSplit& split = plan->model->split;
    const std::span from(reinterpret_cast<const From*>(elements.data()), elements.size() / sizeof(From));
    if (split.degree == 1) return convert(param.value, 0, from);
    const model::ParameterSplit& cut = split.parameters[static_cast<std::size_t>(param.value)];
    if (!cut.cut() && tensor_rank > 0) return;
    model::for_each_run(cut, split.degree, tensor_rank, 0, static_cast<std::int64_t>(from.size()),
                        [&](std::int64_t own, std::int64_t whole, std::int64_t n) {
                          convert(param.value, whole,
                                  from.subspan(static_cast<std::size_t>(own), static_cast<std::size_t>(n)));
                        });
  }
  [[nodiscard]] Result<void> remove_older() const;
};

/// Loaders take model.safetensors before an index, so what is no file of this model must not stay beside it.
Result<void> WeightsWriter::State::remove_older() const {
  std::error_code ignored;
  std::vector<fs::path> older;
  for (const auto& entry : fs::directory_iterator(what.folder, ignored)) {
    const std::string name = entry.path().filename();
    const bool index = name == checkpoint::kIndexFile && layout.index.empty();
    const bool ours = std::ranges::any_of(layout.files, [&](const auto& file) { return file.name == name; });
    if (index || (is_weights_file(name) && !ours)) older.push_back(entry.path());
  }
  for (const fs::path& file : older)
    if (const int why = checkpoint::io::remove_file(file); why != 0 && why != ENOENT)
      return checkpoint::io::failure(Errc::cannot_create, "an older file of weights cannot be removed", why, file);
  return {};
}

std::vector<fs::path> saved_weights_files(const fs::path& folder) {
  return {folder / "model.safetensors", folder / checkpoint::kIndexFile};
}

Result<void> can_write_weights(const fs::path& folder) {
  std::error_code fault;
  if (fs::is_directory(folder, fault)) {
    const fs::path file = saved_weights_files(folder).front();
    const Result<FilePlace> place = file_place(file);
    if (!place) return place.error();
    if (place->kind != FilePlace::Kind::file)
      return Error{Errc::cannot_create, "is a device or a pipe; what is saved is read again", file.string(),
                   "another folder"};
    return can_write(file);
  }
  if (fs::exists(folder, fault))
    return Error{Errc::cannot_create, "is a file; weights are saved into a folder", folder.string(),
                 "the name of a folder, in which model.safetensors is written"};
  // A slash at the end is no name.
  return can_write(folder.has_filename() ? folder : folder.parent_path());
}

WeightsWriter::WeightsWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
WeightsWriter::WeightsWriter(WeightsWriter&&) noexcept = default;
WeightsWriter& WeightsWriter::operator=(WeightsWriter&&) noexcept = default;
WeightsWriter::~WeightsWriter() = default;

Result<WeightsWriter> WeightsWriter::create(const SavedWeights& what, const plan::Plan& plan) {
  auto state = std::make_unique<State>();
  state->what = what;
  state->plan = &plan;
  state->layout = checkpoint::lay_out(tensors_of(*plan.model, what.stored), {}, what.largest_file);
  std::vector<checkpoint::SmallFile> small;
  std::error_code fault;
  if (!what.config.empty() && !fs::exists(what.folder / kConfigFile, fault))
    small.push_back({.name = kConfigFile, .text = what.config});
  Result<checkpoint::Draft> draft = checkpoint::Draft::create(what.folder, 0, state->layout, std::move(small));
  if (!draft) return named(draft.error());
  state->draft_path = draft->path();
  state->draft.emplace(std::move(*draft));
  Result<checkpoint::Part> part = checkpoint::Part::open(state->draft_path, state->layout);
  if (!part) return part.error();
  state->part.emplace(std::move(*part));
  return WeightsWriter(std::move(state));
}

Result<WeightsWriter> WeightsWriter::join(const fs::path& draft, const SavedWeights& what, const plan::Plan& plan,
                                          std::int32_t tensor_rank) {
  auto state = std::make_unique<State>();
  state->what = what;
  state->plan = &plan;
  state->tensor_rank = tensor_rank;
  state->layout = checkpoint::lay_out(tensors_of(*plan.model, what.stored), {}, what.largest_file);
  state->draft_path = draft;
  Result<checkpoint::Part> part = checkpoint::Part::open(draft, state->layout);
  if (!part) return part.error();
  state->part.emplace(std::move(*part));
  return WeightsWriter(std::move(state));
}

const fs::path& WeightsWriter::draft() const {
  return state_->draft_path;
}

void WeightsWriter::add(model::ParamId param, Content content, std::span<const std::byte> elements) {
  State& s = *state_;
  if (content != Content::parameter && content != Content::master) return;
  const model::Model& model = *s.plan->model;
  const Parameter& p = model.parameters[static_cast<std::size_t>(param.value)];
  const bool masters = s.plan->strategy.has_masters() && !model.is_frozen(param);
  if ((content == Content::master) != masters) return;
  if (static_cast<std::int64_t>(elements.size()) == bytes_of(Dtype::f32, p.elems).count())
    s.take<float>(param, elements);
  else if (s.plan->strategy.precision == plan::Precision::bf16)
    s.take<Bf16>(param, elements);
  else
    s.take<F16>(param, elements);
}

Result<std::string> WeightsWriter::finish_part() {
  State& s = *state_;
  if (s.fault) return *s.fault;
  const Result<std::vector<checkpoint::FilePieces>> pieces = s.part->finish();
  if (!pieces) return named(pieces.error());
  return checkpoint::pack(*pieces);
}

Result<void> WeightsWriter::check(std::span<const std::string> parts) {
  State& s = *state_;
  checkpoint::Manifest pieces;
  for (const std::string& part : parts) {
    const Result<std::vector<checkpoint::FilePieces>> own = checkpoint::unpack(part);
    if (!own) return own.error();
    checkpoint::add_pieces(pieces, *own);
  }
  const Result<void> checked = s.draft->check(pieces);
  return checked ? checked : named(checked.error());
}

Result<void> WeightsWriter::finish() {
  State& s = *state_;
  if (Result<void> moved = s.draft->move_into_folder(); !moved) return moved;
  if (Result<void> removed = s.remove_older(); !removed) return removed;
  // What a save that was killed left.
  return checkpoint::prune(s.what.folder, std::numeric_limits<std::int64_t>::max());
}

fs::path WeightsWriter::path() const {
  return saved_weights_files(state_->what.folder)[state_->layout.index.empty() ? 0 : 1];
}

std::size_t WeightsWriter::files() const {
  return state_->layout.files.size();
}

Bytes WeightsWriter::bytes() const {
  return Bytes{state_->layout.bytes};
}

}  // namespace shard
