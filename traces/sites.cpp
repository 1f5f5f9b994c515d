// A stack's site from its caller's: callers come first, so one pass finds all.
#include "traces/sites.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <utility>

namespace shard {
namespace {

using std::string_view;

[[nodiscard]] bool is_python(string_view file) {
  return file.ends_with(".py") || (file.starts_with('<') && file.ends_with('>'));
}

/// Folders of Python, of installed packages, and of PyTorch where it runs from its sources.
constexpr std::array kLibraryFolders = {
    string_view("/site-packages/"),     string_view("/dist-packages/"), string_view("/lib/python"),
    string_view("/torch/nn/"),          string_view("/torch/optim/"),   string_view("/torch/autograd/"),
    string_view("/torch/utils/"),       string_view("/torch/cuda/"),    string_view("/torch/distributed/"),
    string_view("/torch/amp/"),         string_view("/torch/_"),        string_view("/torch/functional.py"),
    string_view("/torch/func/"),        string_view("/torch/fx/"),      string_view("/torch/library.py"),
    string_view("/shardscope-recipe/"),
};

/// Of an installed package that uses PyTorch: where a framework asks for memory, in a stack that has nothing of the
/// user's.
[[nodiscard]] bool is_package(string_view path) {
  for (const string_view folder : {string_view("/site-packages/"), string_view("/dist-packages/")})
    if (const std::size_t at = path.find(folder); at != string_view::npos)
      return !path.substr(at + folder.size()).starts_with("torch/");
  return false;
}

/// Of an optimizer of PyTorch's, which another of its functions calls.
[[nodiscard]] bool is_optimizer_step(string_view function, string_view called_by) {
  return function == "step" && (called_by == "_use_grad" || called_by == "_use_grad_for_differentiable");
}

struct Candidates {
  FrameId own, package, python, autograd, op, innermost;
};

[[nodiscard]] FrameId site_of(const Candidates& candidates) {
  for (const FrameId each : {candidates.own, candidates.package, candidates.python, candidates.autograd, candidates.op,
                             candidates.innermost})
    if (each.valid()) return each;
  return {};
}

}  // namespace

string_view file_name(string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == string_view::npos ? path : path.substr(slash + 1);
}

bool is_library(const Trace& trace, const LibraryFiles& files, const StackFrame& frame) {
  const string_view path = trace.name_of(frame.file);
  if (!is_python(path) || path.starts_with("<frozen ")) return true;
  if (path.find('/') != string_view::npos)
    return std::ranges::any_of(kLibraryFolders, [&](string_view folder) { return path.find(folder) != path.npos; });
  return files.owner_of(trace, frame) != FileOwner::user;
}

std::vector<FrameId> sites(const Trace& trace) {
  struct Of {
    bool python = false, library = false, package = false, autograd = false, op = false;
    string_view function;
  };
  const LibraryFiles files(trace);
  std::vector<Of> frames(trace.frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const StackFrame& frame = trace.frames[i];
    const string_view function = trace.name_of(frame.function), file = trace.name_of(frame.file);
    frames[i] = {.python = is_python(file) && !file.starts_with("<frozen shardscope "),
                 .library = is_library(trace, files, frame),
                 .package = is_package(file) ||
                            (file.find('/') == string_view::npos && files.owner_of(trace, frame) == FileOwner::package),
                 .autograd = function.starts_with("torch::autograd::") && function.find("::apply(") != function.npos,
                 .op = function.starts_with("at::_ops::"),
                 .function = function};
  }
  std::vector<Candidates> of(trace.stacks.size());
  std::vector<FrameId> result(trace.stacks.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    const StackNode& node = trace.stacks[i];
    if (node.caller.valid()) of[i] = of[static_cast<std::size_t>(node.caller.value)];
    if (node.frame.valid()) {
      const Of& frame = frames[static_cast<std::size_t>(node.frame.value)];
      const FrameId caller = of[i].python;  // the nearest one of Python
      const string_view called_by = caller.valid() ? frames[static_cast<std::size_t>(caller.value)].function : "";
      of[i].innermost = node.frame;
      if (frame.python) of[i].python = node.frame;
      if (!frame.library && !is_optimizer_step(frame.function, called_by)) of[i].own = node.frame;
      if (frame.package) of[i].package = node.frame;
      if (frame.autograd) of[i].autograd = node.frame;
      if (frame.op) of[i].op = node.frame;
    }
    result[i] = site_of(of[i]);
  }
  return result;
}

std::string site_text(const Trace& trace, FrameId id) {
  if (!id.valid()) return "";
  const StackFrame& frame = trace.frame_of(id);
  string_view function = trace.name_of(frame.function);
  const string_view file = trace.name_of(frame.file);
  if (is_python(file))
    return std::string(file_name(file)) + (frame.has_line() ? ":" + std::to_string(frame.line) : "") + " " +
           std::string(function);
  // torch::autograd::generated::MmBackward0::apply(...), at::_ops::mm::call(...): the last name but the call itself.
  function = function.substr(0, function.find('('));
  for (const string_view call : {"::apply", "::call", "::redispatch"})
    if (function.ends_with(call)) function.remove_suffix(call.size());
  const std::size_t last = function.rfind("::");
  return std::string(last == string_view::npos || function.find('<') != function.npos ? function
                                                                                      : function.substr(last + 2));
}

std::vector<std::string> stack_text(const Trace& trace, StackId stack, std::size_t most) {
  std::vector<std::string> frames;
  for (StackId at = stack; at.valid(); at = trace.stack_of(at).caller) {
    const FrameId frame = trace.stack_of(at).frame;
    if (!frame.valid()) continue;
    const string_view file = trace.name_of(trace.frame_of(frame).file);
    if (!is_python(file) || file.starts_with("<frozen ")) continue;  // C++, or what imports and watches the program
    if (frames.size() == most) {
      frames.emplace_back("...");
      break;
    }
    frames.push_back(site_text(trace, frame));
  }
  return frames;
}

std::string with_stacks(const std::string& table, const std::vector<std::vector<std::string>>& stacks) {
  // Deeper ones are of Python's and of a launcher's own code.
  constexpr std::size_t kMost = 24;
  std::istringstream rows(table);
  std::string text, line;
  for (std::size_t row = 0; std::getline(rows, line); ++row) {
    text += line + "\n";
    if (row == 0 || row > stacks.size()) continue;
    const std::vector<std::string>& frames = stacks[row - 1];
    // What the row says is not said twice.
    const std::size_t first = !frames.empty() && line.starts_with(frames.front() + " ") ? 1 : 0;
    for (std::size_t i = first; i < std::min(frames.size(), first + kMost); ++i) text += "  < " + frames[i] + "\n";
    if (frames.size() > first + kMost) text += "  < ...\n";
  }
  return text;
}

}  // namespace shard
