// A table of PyTorch's own functions says what a stack does; the innermost of them counts.
#include "traces/import/pytorch_deeds.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "traces/library_files.h"
#include "traces/sites.h"

namespace shard::import {
namespace {

using std::string_view;

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
    Known{"torch/utils/checkpoint.py", "unpack_hook", Doing::backward, true},
    Known{"torch/utils/checkpoint.py", "recompute_fn", Doing::backward, true},
    Known{"torch/autograd/__init__.py", "grad", Doing::backward, false},
    Known{"graph.py", "_engine_run_backward", Doing::backward, true},
    Known{"torch/optim/", "", Doing::stepping, false},
    Known{"optimizer.py", "wrapper", Doing::stepping, true},
    Known{"optimizer.py", "_use_grad", Doing::stepping, true},
    Known{"", "_init_group", Doing::stepping, true},
};

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
  if (function.starts_with("at::cuda::getCurrentCUDABlasHandle") || function.starts_with("at::cuda::getNewWorkspace") ||
      function.find("CUDABlasLtWorkspace") != string_view::npos)
    return Doing::calling;
  if (!path.ends_with(".py")) return std::nullopt;
  if (function == "backward") return Doing::backward;  // of a tensor, a function of somebody's, an engine: all the same
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

/// What a frame adds to what its stack does, whatever else that is.
void add_marks(Deed& deed, string_view path, string_view function) {
  deed.begins_backward |= function == "_make_grads";
  deed.sets_data |= function.starts_with("torch::autograd::VariableHooks::set_data(");
  // The overload with a device and no type: a tensor that is there already is not copied by it.
  deed.to_device |= function.starts_with("torch::autograd::dispatch_to(at::Tensor const&, c10::Device, bool") ||
                    function.starts_with("torch::autograd::THPVariable_cuda(");
  deed.adam_step |= function == "_multi_tensor_adam" || function == "_single_tensor_adam" ||
                    function == "_multi_tensor_adamw" || function == "_single_tensor_adamw";
  const bool bare = path == "adam.py" || path == "adamw.py";
  deed.adam_state |=
      function == "_init_group" && (bare || is_at(path, "torch/optim/adam.py") || is_at(path, "torch/optim/adamw.py"));
}

}  // namespace

/// By stack: callers come first, so one pass finds all.
std::vector<Deed> deeds(const Trace& trace) {
  struct Said {
    std::optional<Doing> doing;
    bool python = false, torch = false;
  };
  std::vector<Said> frames;
  frames.reserve(trace.frames.size());
  const LibraryFiles files(trace);
  for (const StackFrame& frame : trace.frames) {
    const string_view path = trace.name_of(frame.file);
    frames.push_back({said_by(path, trace.name_of(frame.function)), path.ends_with(".py"),
                      path.find("/torch/") != string_view::npos ||
                          (path.find('/') == string_view::npos && files.owner_of(trace, frame) == FileOwner::library)});
  }
  std::vector<Deed> of(trace.stacks.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    const StackNode& node = trace.stacks[i];
    if (node.caller.valid()) of[i] = of[static_cast<std::size_t>(node.caller.value)];
    if (!node.frame.valid()) continue;
    const StackFrame& frame = trace.frame_of(node.frame);
    add_marks(of[i], trace.name_of(frame.file), trace.name_of(frame.function));
    const auto& [said, python, torch] = frames[static_cast<std::size_t>(node.frame.value)];
    Doing& doing = of[i].doing;
    if (said) {
      doing = *said;
      of[i].under_backward |= doing == Doing::backward;
    } else if (doing == Doing::stepping && python && !torch) {
      doing = Doing::own_step;
    }
    if (doing == Doing::unknown && python) doing = Doing::other;
  }
  return of;
}

}  // namespace shard::import
