// Blocks are checked before any of their bytes is read.
#include "executor/state/torch/state.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "executor/state/safetensors.h"
#include "traces/base/printable.h"

namespace shard::torch {
namespace {

constexpr std::int64_t kStretch = 256 * 1024;
constexpr std::string_view kModule = "module.";

Error bad_tensor(const TrainingState& state, const StateTensor& t, const std::string& why) {
  return {.code = Errc::malformed,
          .what = std::string(to_string(t.role)) + " of " + safetensors::in_quotes(t.name) + ' ' + why,
          .where = state.path,
          .help = "all files of one checkpoint"};
}

bool overlap(const Block& a, const Block& b) {
  for (std::size_t d = 0; d < a.at.size(); ++d)
    if (a.at[d] >= b.at[d] + b.sizes[d] || b.at[d] >= a.at[d] + a.sizes[d]) return false;
  return true;
}

Result<void> check_blocks(const TrainingState& state, const StateTensor& t) {
  std::int64_t covered = 0;
  for (const Block& b : t.blocks) {
    bool inside = b.at.size() == t.placed.size() && b.sizes.size() == t.placed.size();
    for (std::size_t d = 0; inside && d < t.placed.size(); ++d)
      inside = b.at[d] >= 0 && b.sizes[d] >= 0 && b.sizes[d] <= t.placed[d] && b.at[d] <= t.placed[d] - b.sizes[d];
    if (!inside) return bad_tensor(state, t, "has a part outside of " + safetensors::shape_text(t.placed));
    covered += elements_of(b.sizes);
  }
  const std::int64_t all = elements_of(t.placed);
  if (covered < all)
    return bad_tensor(state, t, "has parts of " + std::to_string(covered) + " elements of " + std::to_string(all));
  // Ordered by their first dimension, those that cannot meet are far apart.
  std::vector<const Block*> order;
  for (const Block& b : t.blocks)
    if (elements_of(b.sizes) > 0) order.push_back(&b);
  std::ranges::sort(order, {}, [](const Block* b) { return b->at.empty() ? 0 : b->at[0]; });
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      if (!order[j]->at.empty() && order[j]->at[0] >= order[i]->at[0] + order[i]->sizes[0]) break;
      if (overlap(*order[i], *order[j])) return bad_tensor(state, t, "has two parts for the same elements");
    }
  return {};
}

}  // namespace

const char* to_string(Role role) {
  switch (role) {
    case Role::weight: return "the weight";
    case Role::first_moment: return "exp_avg";
    case Role::second_moment: return "exp_avg_sq";
  }
  return "?";
}

std::int64_t elements_of(std::span<const std::int64_t> shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

std::string without_wrappers(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kWrappers{"_orig_mod.", "_fsdp_wrapped_module.",
                                                             "_checkpoint_wrapped_module."};
  std::string bare(name);
  for (const std::string_view wrapper : kWrappers)
    for (std::size_t at = bare.find(wrapper); at != std::string::npos; at = bare.find(wrapper, at))
      bare.erase(at, wrapper.size());
  return bare;
}

Result<void> settle(TrainingState& state) {
  const bool wrapped = !state.tensors.empty() && std::ranges::all_of(state.tensors, [](const StateTensor& t) {
    return t.name.starts_with(kModule);
  });
  if (wrapped) {
    for (StateTensor& t : state.tensors) t.name.erase(0, kModule.size());
    for (StepCount& c : state.counts)
      if (c.name.starts_with(kModule)) c.name.erase(0, kModule.size());
  }
  std::set<std::pair<Role, std::string_view>> seen;
  std::map<std::string_view, const StateTensor*> weights;
  std::int64_t elements = 0;
  for (const StateTensor& t : state.tensors) {
    if (printable_line(t.name) != t.name) return bad_tensor(state, t, "has no name that can be written");
    elements += elements_of(t.shape);
    if (elements > kMostElements) return bad_tensor(state, t, "has too many elements");
    if (!seen.emplace(t.role, t.name).second) return bad_tensor(state, t, "is there twice");
    if (Result<void> whole = check_blocks(state, t); !whole) return whole;
    if (t.role == Role::weight) weights[t.name] = &t;
  }
  if (weights.empty())
    return Error{.code = Errc::contradiction,
                 .what = "has no weights: no tensors of F32, F16 or BF16 beside optimizer state",
                 .where = state.path,
                 .help = "a checkpoint with the model's state_dict()"};
  for (const StateTensor& t : state.tensors) {
    const auto weight = weights.find(t.name);
    if (weight == weights.end()) return bad_tensor(state, t, "is there without the weight");
    if (weight->second->shape != t.shape)
      return bad_tensor(
          state, t,
          "is " + safetensors::shape_text(t.shape) + ", the weight " + safetensors::shape_text(weight->second->shape));
  }
  return {};
}

Result<void> for_each_value(TrainingState& state, const StateTensor& t, const TakeValues& take) {
  std::vector<float> values;
  const auto stretch = [&](const Block& b, std::int64_t in_block, std::int64_t in_whole,
                           std::int64_t n) -> Result<void> {
    while (n > 0) {
      const std::int64_t now = std::min(n, kStretch);
      values.resize(static_cast<std::size_t>(now));
      if (Result<void> read = state.sources.read(b.source, b.first + in_block, values); !read) return read;
      if (Result<void> taken = take(in_whole, values); !taken) return taken;
      in_block += now;
      in_whole += now;
      n -= now;
    }
    return {};
  };
  for (const Block& b : t.blocks) {
    const std::int64_t all = elements_of(b.sizes);
    if (all == 0) continue;
    // Whole dimensions at the end lie one behind the other in the tensor, too.
    std::size_t inner = t.placed.size();
    std::int64_t run = 1;
    while (inner > 0 && (run *= b.sizes[inner - 1], --inner, b.sizes[inner] == t.placed[inner])) {
    }
    for (std::int64_t from = 0; from < all; from += run) {
      std::int64_t rest = from, whole = 0, stride = 1;
      for (std::size_t d = t.placed.size(); d-- > 0;) {
        whole += (b.at[d] + rest % b.sizes[d]) * stride;
        rest /= b.sizes[d];
        stride *= t.placed[d];
      }
      if (Result<void> r = stretch(b, from, whole, run); !r) return r;
    }
  }
  return {};
}

}  // namespace shard::torch
