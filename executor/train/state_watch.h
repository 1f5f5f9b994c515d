// What a rank's state and losses were behind every step, and where they leave those of another run.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/train/session.h"

namespace shard::train {

/// What of a parameter: in the order in which a step makes it.
enum class StateKind : std::uint8_t { first_moment, second_moment, master, value };
[[nodiscard]] constexpr const char* to_string(StateKind v) {
  switch (v) {
    case StateKind::first_moment: return "first_moment";
    case StateKind::second_moment: return "second_moment";
    case StateKind::master: return "master";
    case StateKind::value: return "value";
  }
  return "?";
}
[[nodiscard]] StateKind state_kind(plan::Digest::Content content);

struct StateTensor {
  std::int32_t param = 0;  ///< a model::ParamId
  StateKind kind{};
  friend auto operator<=>(const StateTensor&, const StateTensor&) = default;
};

/// Watches one rank's session. Steps are counted from 1. Not to be moved while the session runs.
class StateWatch {
 public:
  /// Whether the bytes of a tensor behind a step are wanted afterwards.
  using Keep = std::function<bool(std::int64_t step, StateTensor tensor)>;
  /// With a `reference`, whose run has ended, the first step is found whose state is another, and of it the first
  /// tensor in the model's order. Both may be null; `reference` is not owned.
  explicit StateWatch(const StateWatch* reference = nullptr, Keep keep = nullptr)
      : reference_(reference), keep_(std::move(keep)) {}
  StateWatch(const StateWatch&) = delete;
  StateWatch& operator=(const StateWatch&) = delete;

  /// Makes the session show its state behind each step, to this.
  void attach(SessionOptions& options);

  struct Difference {
    std::int64_t step = 0;
    StateTensor tensor;
    std::vector<std::byte> bytes;  ///< that this rank has, whole
  };
  [[nodiscard]] const std::optional<Difference>& first() const { return first_; }
  /// How many parameters differ behind that step.
  [[nodiscard]] std::int64_t parameters() const { return static_cast<std::int64_t>(differing_.size()); }
  /// What was kept; null where nothing was.
  [[nodiscard]] const std::vector<std::byte>* kept(std::int64_t step, StateTensor tensor) const;
  [[nodiscard]] const std::vector<float>& losses() const { return losses_; }

 private:
  void read(StateTensor tensor, std::span<const std::byte> elements);

  const StateWatch* reference_;
  Keep keep_;
  std::int64_t step_ = 0;
  std::map<std::pair<std::int64_t, StateTensor>, std::string> digests_;
  std::map<std::pair<std::int64_t, StateTensor>, std::vector<std::byte>> kept_;
  std::vector<float> losses_;
  std::optional<Difference> first_;
  std::set<std::int32_t> differing_;
};

}  // namespace shard::train
