// Every byte of every arena remembers who touched it last; happens-before is a vector clock with one entry per stream.
#include "sim/check/order.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace shard::plan::verification {
namespace {

/// Per stream, how many of its ops have finished for sure.
using Finished = std::array<std::int32_t, kStreamCount>;

/// Who touched bytes [begin, next stretch) last: numbers are indices of ops in the phase, -1 is nobody.
struct Stretch {
  std::int64_t begin = 0;
  std::int32_t writer = -1;
  Finished readers{-1, -1, -1, -1, -1, -1};  // since that write, the last of each stream
};

/// All bytes of one arena, cut into stretches with equal history; ascending, the first begins at 0.
class History {
 public:
  History() : stretches_{{}} {}

  /// Calls visit(stretch) for those that meet [begin, end).
  template <class Visit>
  void meeting(std::int64_t begin, std::int64_t end, Visit visit) const {
    for (std::size_t i = holding(begin); begin < end && i < stretches_.size() && stretches_[i].begin < end; ++i)
      visit(stretches_[i]);
  }
  /// Calls visit(stretch) for those inside [begin, end), cut to fit.
  template <class Visit>
  void inside(std::int64_t begin, std::int64_t end, Visit visit) {
    if (begin >= end) return;
    const std::size_t first = cut(holding(begin), begin);
    const std::size_t last = before(end, first);
    cut(last, end);
    for (std::size_t i = first; i <= last; ++i) visit(stretches_[i]);
  }
  /// [begin, end) has one history from now on.
  void replace(std::int64_t begin, std::int64_t end, std::int32_t writer) {
    if (begin >= end) return;
    const std::size_t first = cut(holding(begin), begin);
    const std::size_t last = before(end, first);
    std::size_t kept = last + 1;
    if (kept == stretches_.size() || stretches_[kept].begin > end) {
      // What is left of the last one takes its place, unless that is the first one's.
      kept = last == first ? cut(last, end) : last;
      stretches_[kept].begin = end;
    }
    stretches_[first] = Stretch{.begin = begin, .writer = writer};
    stretches_.erase(stretches_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                     stretches_.begin() + static_cast<std::ptrdiff_t>(kept));
  }

 private:
  /// The index of the stretch that has byte `at`.
  [[nodiscard]] std::size_t holding(std::int64_t at) const {
    const auto behind = std::ranges::upper_bound(stretches_, at, {}, &Stretch::begin);
    return static_cast<std::size_t>(behind - stretches_.begin()) - 1;
  }
  /// That of the last stretch which begins before `end`, at `first` or behind it: a few steps, and no search.
  [[nodiscard]] std::size_t before(std::int64_t end, std::size_t first) const {
    while (first + 1 < stretches_.size() && stretches_[first + 1].begin < end) ++first;
    return first;
  }
  /// The index of the stretch that begins at `at`, made if there is none, out of stretch `i` that has the byte before.
  std::size_t cut(std::size_t i, std::int64_t at) {
    if (stretches_[i].begin == at) return i;
    if (i + 1 < stretches_.size() && stretches_[i + 1].begin == at) return i + 1;
    Stretch copy = stretches_[i];
    copy.begin = at;
    stretches_.insert(stretches_.begin() + static_cast<std::ptrdiff_t>(i) + 1, copy);
    return i + 1;
  }
  std::vector<Stretch> stretches_;
};

class PhaseOrder {
 public:
  PhaseOrder(const Plan& plan, const PhaseOps& phase, std::int32_t rank, Faults& faults)
      : plan_(plan),
        phase_(phase),
        shard_(position(plan.topology, rank).shard),
        faults_(faults),
        clocks_(phase.ops.size()),
        number_(phase.ops.size()) {}

  void check() {
    for (std::size_t i = 0; i < phase_.ops.size() && !faults_.failed(); ++i) {
      const Op& op = phase_.ops[i];
      faults_.at(&phase_, &op);
      start(i, op);
      for (const Operand& o : op.operands) check_operand(i, o);
      const auto me = static_cast<std::int32_t>(i);
      // Reads first: an op that updates bytes it also reads elsewhere is their last writer.
      for (const Operand& o : op.operands)
        if (!o.writes()) visit(o, [&](Stretch& s) { s.readers[static_cast<std::size_t>(op.stream)] = me; });
      for (const Operand& o : op.operands)
        if (o.writes()) {
          const Range r = in_arena(o);
          history(o).replace(r.begin, r.end, me);
        }
    }
  }

 private:
  void start(std::size_t i, const Op& op) {
    const auto stream = static_cast<std::size_t>(op.stream);
    index_[op.id.value] = i;
    clocks_[i] = issued_[stream] > 0 ? clocks_[last_[stream]] : Finished{};
    clocks_[i][stream] = issued_[stream];
    for (OpId d : op.dependencies) {
      const std::size_t other = index_.at(d.value);
      const auto its = static_cast<std::size_t>(phase_.ops[other].stream);
      for (std::size_t s = 0; s < kStreamCount; ++s) clocks_[i][s] = std::max(clocks_[i][s], clocks_[other][s]);
      clocks_[i][its] = std::max(clocks_[i][its], number_[other] + 1);
    }
    number_[i] = issued_[stream]++;
    last_[stream] = i;
  }
  [[nodiscard]] bool finished_before(std::int32_t other, std::size_t i) const {
    if (other < 0 || static_cast<std::size_t>(other) == i) return true;
    const auto o = static_cast<std::size_t>(other);
    return clocks_[i][static_cast<std::size_t>(phase_.ops[o].stream)] > number_[o];
  }
  [[nodiscard]] Range in_arena(const Operand& o) const { return range_in_arena(plan_, o, shard_); }
  [[nodiscard]] History& history(const Operand& o) {
    return histories_[static_cast<std::size_t>(plan_.buffer(o.buffer).memory)];
  }
  template <class Visit>
  void visit(const Operand& o, Visit each) {
    const Range r = in_arena(o);
    history(o).inside(r.begin, r.end, each);
  }

  void check_operand(std::size_t i, const Operand& o) {
    const Range r = in_arena(o);
    history(o).meeting(r.begin, r.end, [&](const Stretch& s) {
      require(i, o, s.writer, "wrote");
      if (!o.writes()) return;
      for (std::int32_t reader : s.readers) require(i, o, reader, "reads");
    });
  }
  void require(std::size_t i, const Operand& o, std::int32_t other, const char* did) {
    if (faults_.failed() || finished_before(other, i)) return;
    const Op& source = phase_.ops[static_cast<std::size_t>(other)];
    faults_.fail("P7", std::string(o.writes() ? "writes" : "reads") + " bytes of '" +
                           std::string(plan_.buffer(o.buffer).name) + "' that op " + std::to_string(source.id.value) +
                           " \"" + std::string(source.name) + "\" of stream " + to_string(source.stream) + ' ' + did +
                           ", and no edge orders the two");
  }

  const Plan& plan_;
  const PhaseOps& phase_;
  std::int32_t shard_;
  Faults& faults_;
  std::vector<Finished> clocks_;      // before op i starts
  std::vector<std::int32_t> number_;  // of op i within its stream
  Finished issued_{};
  std::array<std::size_t, kStreamCount> last_{};
  std::unordered_map<std::int32_t, std::size_t> index_;
  std::array<History, kMemoryCount> histories_;
};

}  // namespace

void check_order(const Plan& plan, std::int32_t rank, Faults& faults) {
  for (const PhaseOps& phase : plan.phases) PhaseOrder(plan, phase, rank, faults).check();
}

}  // namespace shard::plan::verification
