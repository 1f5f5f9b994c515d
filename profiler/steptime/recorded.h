// How long kernels took in a run that was recorded: by the operators and tensors that they belong to, by their names
// and sizes, and by their place between others.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/import/kineto_program.h"

namespace shard::steptime {

/// How often something was recorded and how long it took.
class Durations {
 public:
  void add(double seconds) {
    ++count_;
    sum_ += seconds;
    squares_ += seconds * seconds;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] double mean() const { return sum_ / static_cast<double>(count_); }
  /// The standard deviation, relative to the mean.
  [[nodiscard]] double spread() const;

 private:
  std::int64_t count_ = 0;
  double sum_ = 0, squares_ = 0;
};

using Size = std::array<std::int64_t, 3>;

/// A kernel of the recording. Those of a kind are equal in name and, where it is known, size.
struct RecordedKernel {
  std::int32_t kind = 0;
  double seconds = 0;
};

class Recorded {
 public:
  /// Collectives are left out: they wait for other ranks.
  explicit Recorded(const import::KinetoProgram& recording, std::string where = "the recording");

  /// Seconds that all kernels of one such call took, on average; none: there was none.
  [[nodiscard]] std::optional<double> of(const import::KinetoOperator& called) const;
  /// Operators that are told apart.
  [[nodiscard]] std::size_t count() const { return by_call_.size(); }
  /// Whether operators come with types of their tensors (PyTorch's profiler), not sizes alone (NVTX ranges).
  [[nodiscard]] bool has_types() const { return has_types_; }

  /// Whether kernels come with grid and block; where not, the kind of a kernel is its name.
  [[nodiscard]] bool has_sizes() const { return has_sizes_; }
  /// Of a bare name (kernel_names.h); -1: it is not there.
  [[nodiscard]] std::int32_t kind_of(const std::string& bare, const Size& grid, const Size& block) const;
  [[nodiscard]] const Durations& of_kind(std::int32_t kind) const { return kinds_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::string_view name_of_kind(std::int32_t kind) const {
    return names_[static_cast<std::size_t>(kind)];
  }
  /// Each stream's, in the order in which they ran.
  [[nodiscard]] const std::vector<std::vector<RecordedKernel>>& streams() const { return streams_; }
  /// Durations of a kind, in the order in which they ran.
  [[nodiscard]] std::vector<double> in_order(std::int32_t kind) const;

  /// "HtoD", "DtoH", "DtoD" and how many bytes.
  [[nodiscard]] const Durations* copy(const std::string& direction, std::int64_t bytes) const;
  [[nodiscard]] const Durations* fill(std::int64_t bytes) const;

  [[nodiscard]] const std::string& where() const { return where_; }
  /// "'gemm' (grid 1x2x3, block 4x5x6), ..." of those that took longest.
  [[nodiscard]] std::string longest() const;

 private:
  void add_operators(const import::KinetoProgram& recording);
  void add_kernels(const import::KinetoProgram& recording);
  [[nodiscard]] std::string key_of(const import::KinetoOperator& called) const;

  std::string where_;
  bool has_types_ = false, has_sizes_ = false;
  std::unordered_map<std::string, Durations> by_call_;
  std::unordered_map<std::string, std::int32_t> kind_by_key_;
  std::vector<Durations> kinds_;
  std::vector<std::string> names_;  ///< bare, by kind
  std::vector<std::string> shown_;  ///< with sizes, by kind
  std::vector<std::vector<RecordedKernel>> streams_;
  std::vector<RecordedKernel> all_;  ///< of all streams, in the order in which they began
  std::map<std::pair<std::string, std::int64_t>, Durations> copies_;
  std::map<std::int64_t, Durations> fills_;
};

/// "'gemm' (grid 1x2x3, block 4x5x6)"; without a size where it is 0.
[[nodiscard]] std::string show_kernel(std::string_view name, const Size& grid, const Size& block);

}  // namespace shard::steptime
