// A call's key is its operator's name with sizes and types of its tensors; a kernel's its name with grid and block.
#include "profiler/steptime/recorded.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "profiler/steptime/kernel_names.h"
#include "sim/price/recording.h"

namespace shard::steptime {
namespace {

std::string show_size(const Size& size) {
  return std::to_string(size[0]) + 'x' + std::to_string(size[1]) + 'x' + std::to_string(size[2]);
}

std::string kernel_key(const std::string& bare, const Size& grid, const Size& block) {
  return bare + '|' + show_size(grid) + '|' + show_size(block);
}

double seconds_of(const import::KinetoKernel& kernel) {
  return static_cast<double>(kernel.duration_ns) * 1e-9;
}

}  // namespace

double Durations::spread() const {
  if (count_ < 2 || sum_ <= 0) return 0;
  const double average = mean();
  return std::sqrt(std::max(0.0, squares_ / static_cast<double>(count_) - average * average)) / average;
}

std::string show_kernel(std::string_view name, const Size& grid, const Size& block) {
  constexpr std::size_t kMost = 80;
  std::string text = "'" + std::string(name.substr(0, kMost)) + (name.size() > kMost ? "..." : "") + "'";
  if (grid[0] > 0) text += " (grid " + show_size(grid) + ", block " + show_size(block) + ")";
  return text;
}

Recorded::Recorded(const import::KinetoProgram& recording, std::string where) : where_(std::move(where)) {
  has_types_ = std::ranges::any_of(recording.operators, [](const import::KinetoOperator& each) {
    return std::ranges::any_of(each.inputs, [](const import::Operand& input) { return !input.type.empty(); });
  });
  has_sizes_ = std::ranges::any_of(recording.kernels, [](const auto& kernel) { return kernel.grid[0] > 0; });
  add_operators(recording);
  add_kernels(recording);
}

/// Where only sizes are known, what has none may be a number as well as a tensor. Empty where no tensor is known.
std::string Recorded::key_of(const import::KinetoOperator& called) const {
  std::string key;
  for (const import::Operand& input : called.inputs) {
    if (!has_types_ && input.sizes.empty()) continue;
    key += '|';
    if (has_types_) key += input.type;
    for (const std::int64_t size : input.sizes) key += ',' + std::to_string(size);
  }
  return key.empty() ? key : called.name + key;
}

void Recorded::add_operators(const import::KinetoProgram& recording) {
  const bool has_shapes =
      std::ranges::any_of(recording.operators, [](const auto& each) { return !each.inputs.empty(); });
  if (!has_shapes) return;
  const std::vector<std::int32_t> callers = price::callers_of(recording);
  std::map<std::int32_t, double> by_operator;  // one call's
  for (std::size_t i = 0; i < callers.size(); ++i)
    if (callers[i] >= 0 && !price::is_exchange(recording.kernels[i]))
      by_operator[callers[i]] += seconds_of(recording.kernels[i]);
  for (const auto& [index, seconds] : by_operator)
    if (std::string key = key_of(recording.operators[static_cast<std::size_t>(index)]); !key.empty())
      by_call_[std::move(key)].add(seconds);
}

void Recorded::add_kernels(const import::KinetoProgram& recording) {
  std::vector<const import::KinetoKernel*> order;
  for (const import::KinetoKernel& kernel : recording.kernels)
    if (!price::is_exchange(kernel)) order.push_back(&kernel);
  std::ranges::stable_sort(order, {}, &import::KinetoKernel::begin_ns);
  std::unordered_map<std::string, std::string> bare;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> streams;
  for (const import::KinetoKernel* const kernel : order) {
    const double seconds = seconds_of(*kernel);
    if (kernel->category != "kernel") {
      const std::size_t word = kernel->name.find("Memcpy ");
      constexpr std::size_t kPrefix = 7, kDirection = 4;
      if (word != std::string::npos)
        copies_[{kernel->name.substr(word + kPrefix, kDirection), kernel->bytes}].add(seconds);
      else
        fills_[kernel->bytes].add(seconds);
      continue;
    }
    std::string& name = bare[kernel->name];
    if (name.empty()) name = bare_name(kernel->name);
    const auto [entry, is_new] = kind_by_key_.try_emplace(kernel_key(name, kernel->grid, kernel->block),
                                                          static_cast<std::int32_t>(kinds_.size()));
    if (is_new) {
      kinds_.emplace_back();
      names_.push_back(name);
      shown_.push_back(show_kernel(readable(kernel->name), kernel->grid, kernel->block));
    }
    kinds_[static_cast<std::size_t>(entry->second)].add(seconds);
    const auto stream = streams.try_emplace({kernel->process, kernel->stream}, streams_.size());
    if (stream.second) streams_.emplace_back();
    streams_[stream.first->second].push_back({.kind = entry->second, .seconds = seconds});
    all_.push_back({.kind = entry->second, .seconds = seconds});
  }
}

std::optional<double> Recorded::of(const import::KinetoOperator& called) const {
  const auto found = by_call_.find(key_of(called));
  if (found == by_call_.end()) return std::nullopt;
  return found->second.mean();
}

std::int32_t Recorded::kind_of(const std::string& bare, const Size& grid, const Size& block) const {
  const auto found = kind_by_key_.find(has_sizes_ ? kernel_key(bare, grid, block) : kernel_key(bare, {}, {}));
  return found == kind_by_key_.end() ? -1 : found->second;
}

std::vector<double> Recorded::in_order(std::int32_t kind) const {
  std::vector<double> found;
  for (const RecordedKernel& each : all_)
    if (each.kind == kind) found.push_back(each.seconds);
  return found;
}

const Durations* Recorded::copy(const std::string& direction, std::int64_t bytes) const {
  const auto found = copies_.find({direction, bytes});
  return found == copies_.end() ? nullptr : &found->second;
}

const Durations* Recorded::fill(std::int64_t bytes) const {
  const auto found = fills_.find(bytes);
  return found == fills_.end() ? nullptr : &found->second;
}

std::string Recorded::longest() const {
  constexpr std::size_t kMost = 3;
  std::vector<std::size_t> order(kinds_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [this](std::size_t i) { return kinds_[i].mean() * static_cast<double>(kinds_[i].count()); });
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + shown_[order[i]];
  if (order.size() > kMost) text += " and " + std::to_string(order.size() - kMost) + " more";
  return text.empty() ? "no kernel that computes" : text;
}

}  // namespace shard::steptime
