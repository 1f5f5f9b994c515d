// Frames give every stack a phase of training; the order of events tells what outlived the phase that it was made in.
#include "traces/import/pytorch_categories.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shard::import {
namespace {

using std::string_view;

/// What a program was doing when it asked for memory.
enum class Doing : std::uint8_t {
  unknown,  ///< no frames
  other,    ///< Python code that is none of the following
  setup,    ///< a module's parameters come into being or move
  forward,
  gathering,  ///< FSDP's full parameters
  backward,
  accumulating,  ///< of a backward, what goes into .grad
  stepping,      ///< a step of PyTorch's optimizers
  own_step,      ///< the same of somebody's own optimizer: state, or parameters anew
};

/// File or folder, function ("" for every one), and what they do. Files as PyTorch has them; a file without a directory
/// (people take them out before they publish) is one of these where the function is PyTorch's alone.
struct Known {
  string_view file, function;
  Doing doing;
  bool also_bare;
};
constexpr std::array kKnown = {
    Known{"torch/nn/modules/module.py", "_call_impl", Doing::forward, true},
    Known{"torch/nn/modules/module.py", "_apply", Doing::setup, true},
    Known{"torch/nn/modules/module.py", "convert", Doing::setup, true},
    Known{"torch/nn/modules/", "__init__", Doing::setup, false},
    Known{"torch/nn/modules/", "reset_parameters", Doing::setup, false},
    Known{"torch/nn/modules/", "_reset_parameters", Doing::setup, false},
    Known{"torch/nn/parameter.py", "", Doing::setup, false},
    Known{"torch/nn/init.py", "", Doing::setup, false},
    Known{"_fsdp_param.py", "_init_sharded_param", Doing::setup, true},
    Known{"_fsdp_param.py", "init_all_gather_outputs", Doing::gathering, true},
    Known{"_fsdp_param.py", "init_unsharded_param", Doing::gathering, true},
    Known{"_fsdp_param.py", "alloc_all_gather_outputs", Doing::gathering, true},
    Known{"_fsdp_collectives.py", "foreach_all_gather", Doing::gathering, true},
    Known{"_fsdp_collectives.py", "foreach_all_gather_copy_out", Doing::gathering, true},
    Known{"_flat_param.py", "_alloc_padded_unsharded_flat_param", Doing::gathering, true},
    Known{"_flat_param.py", "unshard", Doing::gathering, true},
    Known{"torch/autograd/__init__.py", "backward", Doing::backward, true},
    Known{"torch/autograd/__init__.py", "grad", Doing::backward, false},
    Known{"graph.py", "_engine_run_backward", Doing::backward, true},
    Known{"torch/optim/", "", Doing::stepping, false},
    Known{"optimizer.py", "wrapper", Doing::stepping, true},
    Known{"optimizer.py", "_use_grad", Doing::stepping, true},
    Known{"", "_init_group", Doing::stepping, true},
};

[[nodiscard]] string_view file_name(string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == string_view::npos ? path : path.substr(slash + 1);
}

/// Whether `path` is the file (or lies in the folder) `known`, whole names of folders compared.
[[nodiscard]] bool is_at(string_view path, string_view known) {
  const std::size_t at = path.rfind(known);
  if (at == string_view::npos) return false;
  const std::size_t end = at + known.size();
  return (at == 0 || path[at - 1] == '/') && (known.ends_with('/') || end == path.size());
}

/// What a frame says of its stack; nothing where it says nothing.
[[nodiscard]] std::optional<Doing> said_by(string_view path, string_view function) {
  if (function.find("torch::autograd::AccumulateGrad::") != string_view::npos) return Doing::accumulating;
  if (function.starts_with("torch::autograd::Engine::") ||
      function.starts_with("torch::autograd::python::PythonEngine"))
    return Doing::backward;
  if (!path.ends_with(".py")) return std::nullopt;
  const bool bare = path.find('/') == string_view::npos;
  const auto is = [&](const Known& known) {
    if (!known.function.empty() && known.function != function) return false;
    if (!bare) return !known.file.empty() && is_at(path, known.file);
    return known.also_bare && (known.file.empty() || file_name(known.file) == path);
  };
  const auto* const known = std::ranges::find_if(kKnown, is);
  if (known == kKnown.end()) return std::nullopt;
  return known->doing;
}

/// By stack: callers come first, so one pass finds all.
[[nodiscard]] std::vector<Doing> doings(const Trace& trace) {
  struct Said {
    std::optional<Doing> doing;
    bool python = false, torch = false;
  };
  std::vector<Said> frames;
  frames.reserve(trace.frames.size());
  for (const StackFrame& frame : trace.frames) {
    const string_view path = trace.name_of(frame.file);
    frames.push_back({said_by(path, trace.name_of(frame.function)), path.ends_with(".py"),
                      path.find("/torch/") != string_view::npos});
  }
  std::vector<Doing> of(trace.stacks.size(), Doing::unknown);
  for (std::size_t i = 0; i < of.size(); ++i) {
    const StackNode& node = trace.stacks[i];
    if (node.caller.valid()) of[i] = of[static_cast<std::size_t>(node.caller.value)];
    if (!node.frame.valid()) continue;
    const auto& [said, python, torch] = frames[static_cast<std::size_t>(node.frame.value)];
    if (said) {
      of[i] = *said;
    } else if (of[i] == Doing::stepping && python && !torch) {
      of[i] = Doing::own_step;
    }
    if (of[i] == Doing::unknown && python) of[i] = Doing::other;
  }
  return of;
}

/// The blocks of one rank's memory, followed through its events.
class Blocks {
 public:
  explicit Blocks(MemoryTable& memory) : memory_(memory) {}

  void acquired(std::size_t event, Doing doing) {
    enter(doing);
    live_[memory_.buffer[event].value] = {event, doing};
    switch (doing) {
      case Doing::setup: return is(event, Category::parameter);
      case Doing::gathering: return is(event, Category::gathered);
      case Doing::forward: return is(event, Category::activation);
      case Doing::accumulating: return is(event, Category::gradient);
      case Doing::backward:
      case Doing::stepping: made_here_.push_back(event); return;
      case Doing::own_step:
      case Doing::other:
      case Doing::unknown: return;
    }
  }

  void released(std::size_t event, Doing doing) {
    enter(doing);
    const auto at = live_.find(memory_.buffer[event].value);
    if (at == live_.end()) return;
    const auto [made, made_while] = at->second;
    if (made_while == Doing::other && phase_ == Doing::backward) is(made, Category::activation);
    memory_.category[event] = memory_.category[made];
    live_.erase(at);
  }

 private:
  struct Block {
    std::size_t event = 0;
    Doing doing = Doing::unknown;
  };

  void is(std::size_t event, Category category) { memory_.category[event] = category; }

  /// Where another phase begins, what was made in the one before and is still there has outlived it.
  void enter(Doing doing) {
    if (doing == Doing::accumulating) doing = Doing::backward;
    if (doing == Doing::own_step) doing = Doing::stepping;
    if (doing == Doing::unknown || doing == phase_) return;
    const bool is_within = phase_ == Doing::backward && (doing == Doing::forward || doing == Doing::gathering);
    if (is_within) return;  // recomputed, or gathered again
    const Category outlived = phase_ == Doing::backward ? Category::gradient : Category::optimizer_state;
    for (const std::size_t made : made_here_) {
      const auto at = live_.find(memory_.buffer[made].value);
      if (at != live_.end() && at->second.event == made) is(made, outlived);
    }
    made_here_.clear();
    phase_ = doing;
  }

  MemoryTable& memory_;
  std::unordered_map<std::int32_t, Block> live_;  // by buffer
  std::vector<std::size_t> made_here_;            // in this backward, in this step
  Doing phase_ = Doing::unknown;
};

}  // namespace

void recognise_categories(Trace& trace, std::size_t recorded_from) {
  if (trace.stacks.empty()) return;
  const bool python_alone = std::ranges::all_of(
      trace.frames, [&](const StackFrame& frame) { return trace.name_of(frame.file).ends_with(".py"); });
  const std::vector<Doing> of = doings(trace);
  std::map<std::pair<Rank, Memory>, Blocks> memories;
  MemoryTable& memory = trace.memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory.category[i] != Category::not_known) continue;
    Blocks& blocks = memories.try_emplace({memory.rank[i], memory.memory[i]}, memory).first->second;
    const StackId stack = memory.stack[i];
    const Doing without_frames = python_alone && i >= recorded_from ? Doing::backward : Doing::unknown;
    const Doing doing = stack.valid() ? of[static_cast<std::size_t>(stack.value)] : without_frames;
    memory.delta_bytes[i] < 0 ? blocks.released(i, doing) : blocks.acquired(i, doing);
  }
}

}  // namespace shard::import
