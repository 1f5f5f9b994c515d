// Tensors in the order of the weights; each goes through one buffer, and nothing is sorted in memory.
#include "executor/state/torch/convert.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "executor/state/checkpoint/directory.h"
#include "executor/state/checkpoint/draft.h"
#include "executor/state/checkpoint/part.h"

namespace shard::torch {
namespace {

using checkpoint::TensorSpec;

/// What is written: specs of the files, and for each the tensor or the count behind it.
struct Contents {
  std::vector<TensorSpec> weights, state;
  std::vector<const StateTensor*> tensors;  ///< of weights, then of state; null: a count
  std::vector<std::int32_t> counts;         ///< of those that are null, in order
};

Contents contents_of(const TrainingState& state) {
  std::map<std::pair<std::string_view, Role>, const StateTensor*> by_name;
  std::map<std::string_view, std::int64_t> counts;
  for (const StateTensor& t : state.tensors) by_name[{t.name, t.role}] = &t;
  for (const StepCount& c : state.counts) counts[c.name] = c.steps;
  Contents contents;
  std::vector<const StateTensor*> moments;
  const auto add_state = [&](std::string name, const char* dtype, std::vector<std::int64_t> shape,
                             const StateTensor* tensor) {
    contents.state.push_back({.name = std::move(name), .dtype = dtype, .shape = std::move(shape)});
    moments.push_back(tensor);
  };
  for (const StateTensor& t : state.tensors) {
    if (t.role != Role::weight) continue;
    contents.weights.push_back({.name = t.name, .dtype = "F32", .shape = t.shape});
    contents.tensors.push_back(&t);
    for (const auto& [role, end] : {std::pair{Role::first_moment, ".exp_avg"}, {Role::second_moment, ".exp_avg_sq"}})
      if (const auto moment = by_name.find({t.name, role}); moment != by_name.end())
        add_state(t.name + end, "F32", t.shape, moment->second);
    const auto count = counts.find(t.name);
    if (count == counts.end()) continue;
    add_state(t.name + ".step", "I32", {}, nullptr);
    contents.counts.push_back(
        static_cast<std::int32_t>(std::min<std::int64_t>(count->second, std::numeric_limits<std::int32_t>::max())));
  }
  contents.tensors.insert(contents.tensors.end(), moments.begin(), moments.end());
  return contents;
}

Result<void> write_tensors(TrainingState& state, const Contents& contents, const Conversion& conversion,
                           checkpoint::Part& part) {
  std::int64_t all = 0, done = 0;
  for (const StateTensor* const t : contents.tensors) all += t == nullptr ? 0 : elements_of(t->shape);
  std::size_t count = 0;
  for (std::size_t i = 0; i < contents.tensors.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    if (contents.tensors[i] == nullptr) {
      const std::int32_t steps = contents.counts[count++];
      if (Result<void> r = part.write(number, 0, std::as_bytes(std::span(&steps, 1))); !r) return r;
      continue;
    }
    const Result<void> written =
        for_each_value(state, *contents.tensors[i], [&](std::int64_t first, std::span<const float> values) {
          done += std::ssize(values);
          if (conversion.progress) conversion.progress(static_cast<double>(done) / static_cast<double>(all));
          return part.write(number, first * static_cast<std::int64_t>(sizeof(float)), std::as_bytes(values));
        });
    if (!written) return written;
  }
  return {};
}

}  // namespace

Result<std::filesystem::path> convert(TrainingState& state, const Conversion& conversion) {
  const Contents contents = contents_of(state);
  const checkpoint::Layout layout = checkpoint::lay_out(contents.weights, contents.state);
  if (Result<void> room = checkpoint::check_room(conversion.folder, layout.bytes); !room) return room.error();
  std::vector<checkpoint::SmallFile> small;
  if (!conversion.config.empty()) small.push_back({.name = "config.json", .text = conversion.config});
  Result<checkpoint::Draft> draft =
      checkpoint::Draft::create(conversion.folder, conversion.step, layout, std::move(small));
  if (!draft) return draft.error();
  Result<checkpoint::Part> part = checkpoint::Part::open(draft->path(), layout);
  if (!part) return part.error();
  if (Result<void> written = write_tensors(state, contents, conversion, *part); !written) return written.error();
  const Result<std::vector<checkpoint::FilePieces>> pieces = part->finish();
  if (!pieces) return pieces.error();
  checkpoint::Manifest manifest;
  manifest.about = {{.name = "imported from", .value = state.form}, {.name = "path", .value = state.path}};
  checkpoint::add_pieces(manifest, *pieces);
  const std::filesystem::path name = draft->name();
  if (Result<void> committed = draft->commit(std::move(manifest)); !committed) return committed.error();
  return name;
}

}  // namespace shard::torch
