// The gradient tree as terms: what was added to what, in which order, across micro-steps and ranks. Rules P13 to P15.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ir/op.h"

namespace shard::plan::verification {

/// Index of a term.
using Node = std::uint64_t;

/// Terms, each stored once. A leaf is one micro-batch's whole gradient; which micro-batch of the step it is depends on
/// the rank. An addition does not know left from right: floating-point sums commute.
class GradientNodes {
 public:
  /// Reproducible strategies must have the tree itself right, not only its leaves.
  explicit GradientNodes(const Strategy& strategy)
      : ranks_(strategy.data_parallel()),
        shards_(strategy.shard_degree()),
        micro_batches_(strategy.micro_batches()),
        strict_(strategy.reproducible) {}

  /// What micro-step `step` works on.
  void deal(std::int32_t step, LoadBatch batch) { dealt_[step] = batch; }

  /// Contributions so far of one micro-step, their order included; `history` is any number that stands for them.
  [[nodiscard]] Node partial(std::int32_t step, std::uint64_t history) {
    return intern({Kind::partial, step, history, 0});
  }
  /// All contributions of one micro-step.
  [[nodiscard]] Node leaf(std::int32_t step) { return intern({Kind::leaf, step, 0, 0}); }
  [[nodiscard]] Node add(Node a, Node b) { return intern({Kind::add, -1, std::min(a, b), std::max(a, b)}); }
  /// The sum over the ranks of a group.
  [[nodiscard]] Node reduced(Node a, Group group) {
    return intern({Kind::reduced, static_cast<std::int32_t>(group), a, 0});
  }

  /// When a node is a partial micro-step, or its last addend is: the step, the history, and what it is added to.
  struct Open {
    std::int32_t step = -1;
    std::uint64_t history = 0;
    std::optional<Node> base{};
  };
  [[nodiscard]] std::optional<Open> open(Node n) const;
  [[nodiscard]] bool has_partial(Node n) const;

  /// Over which ranks a node has been summed.
  struct Reach {
    bool shards = false;
    bool replicas = false;
    [[nodiscard]] bool covers(Group group) const {
      return (shards && group != Group::replica) || (replicas && group != Group::shard);
    }
    [[nodiscard]] bool complete(const Strategy& s) const {
      return (shards || s.shard_degree() == 1) && (replicas || s.replicas() == 1);
    }
    friend bool operator==(const Reach&, const Reach&) = default;
  };
  [[nodiscard]] Reach reach(Node n) const;

  /// What is wrong with n as the step's gradient on data rank `rank`, or nothing: every micro-batch once, and when
  /// strict, along the complete binary tree over the micro-batch index.
  [[nodiscard]] std::optional<std::string> wrong_as_root(Node n, std::int32_t rank);

 private:
  enum class Kind : std::uint8_t { partial, leaf, add, reduced };
  using Term = std::tuple<Kind, std::int32_t, std::uint64_t, std::uint64_t>;
  /// A sum on one rank: its micro-batches, ascending, and whether it is the canonical tree over an aligned run of them.
  struct Sum {
    std::vector<std::int64_t> leaves;
    bool canonical = false;
  };
  Node intern(const Term& term);
  Sum sum_of(Node n, std::int32_t rank) const;
  static Sum joined(const Sum& a, const Sum& b);
  Sum over_group(Node n, const RankGroup& group, std::int32_t first, std::int32_t last) const;
  [[nodiscard]] RankGroup group_of(Group group, std::int32_t rank) const;

  std::int32_t ranks_;
  std::int32_t shards_;
  std::int64_t micro_batches_;
  bool strict_;
  std::map<std::int32_t, LoadBatch> dealt_;
  std::vector<Term> terms_;
  std::map<Term, Node> known_;
  std::map<std::pair<Node, std::int32_t>, std::optional<std::string>> judged_;
};

}  // namespace shard::plan::verification
