// Two strategies' runs side by side.
#include "executor/train/agreement.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <span>
#include <utility>

#include "executor/numeric/half.h"
#include "sim/strategy/topology.h"

namespace shard::train {
namespace {

/// As stored; 16 bits widened exactly.
double element_of(std::span<const std::byte> bytes, Dtype dtype, std::int64_t i) {
  const auto size = static_cast<std::size_t>(bytes_per_element(dtype));
  const std::byte* const at = bytes.data() + static_cast<std::size_t>(i) * size;
  std::uint16_t half = 0;
  float whole = 0;
  if (dtype == Dtype::f32)
    std::memcpy(&whole, at, sizeof whole);
  else
    std::memcpy(&half, at, sizeof half);
  if (dtype == Dtype::bf16) return to_f32(Bf16{half});
  if (dtype == Dtype::f16) return to_f32(F16{half});
  return whole;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b, std::size_t i) {
  return std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i]);
}

class Comparing {
 public:
  explicit Comparing(const AgreementRuns& runs)
      : runs_(runs),
        topology_(runs.plans->classes.front().topology),
        storage_(runs.plans->classes.front().target.storage) {}

  Result<Agreement> run() {
    if (Result<void> r = run_reference(references_, nullptr); !r) return r.error();
    const auto at_end = [this](std::int64_t step, StateTensor tensor) { return is_measured(step, tensor); };
    for (std::int32_t rank = 0; rank < topology_.world_size; ++rank)
      watches_.emplace_back(&references_[part_of(rank)], runs_.measure ? StateWatch::Keep(at_end) : nullptr);
    const auto results = runs_.run(
        *runs_.plans, [this](std::int32_t rank) { return session_of(watches_[static_cast<std::size_t>(rank)]); });
    if (!results) return results.error();
    result_.sha256 = results->front().state_sha256;
    result_.reference_losses = references_.front().losses();
    result_.losses = watches_.front().losses();
    find_first();
    if (result_.first || runs_.measure)
      if (Result<void> r = look_again(); !r) return r.error();
    return std::move(result_);
  }

 private:
  /// Ranks that share a model hold a part of it each, the same in both runs.
  [[nodiscard]] std::size_t part_of(std::int32_t rank) const {
    return static_cast<std::size_t>(plan::position(topology_, rank).tensor);
  }
  [[nodiscard]] std::size_t parts() const { return static_cast<std::size_t>(topology_.tensor_parallel); }

  [[nodiscard]] SessionOptions session_of(StateWatch& watch) const {
    SessionOptions options = runs_.session;
    watch.attach(options);
    return options;
  }

  /// Only the first rank of each part is watched: the reference is what counts, not whether its copies are equal.
  Result<void> run_reference(std::deque<StateWatch>& watches, const StateWatch::Keep& keep) {
    for (std::size_t part = 0; part < parts(); ++part) watches.emplace_back(nullptr, keep);
    const auto results = runs_.run_reference(*runs_.reference, [&](std::int32_t rank) {
      const auto part = static_cast<std::size_t>(rank);
      if (part < watches.size()) return session_of(watches[part]);
      SessionOptions unwatched = runs_.session;  // it takes part where the others show what they have
      unwatched.digest = true;
      unwatched.read_each_step = true;
      return unwatched;
    });
    if (!results) return results.error();
    result_.reference_sha256 = results->front().state_sha256;
    return {};
  }

  void find_first() {
    const StateWatch* least = nullptr;
    for (const StateWatch& watch : watches_) {
      if (!watch.first()) continue;
      const auto& known = watch.first();
      if (least == nullptr ||
          std::pair(known->step, known->tensor) < std::pair(least->first()->step, least->first()->tensor))
        least = &watch;
    }
    if (least != nullptr) result_.first = {.step = least->first()->step, .tensor = least->first()->tensor};
    // A loss is of the state before its step.
    for (std::size_t rank = 0; rank < watches_.size(); ++rank) {
      const std::vector<float>& losses = watches_[rank].losses();
      for (std::size_t i = 0; i < losses.size(); ++i) {
        const auto step = static_cast<std::int64_t>(i) + 1;
        if (result_.first && result_.first->step <= step) break;
        if (same_bits(losses, result_.reference_losses, i)) continue;
        result_.losses = losses;
        result_.first = {.step = step,
                         .rank = static_cast<std::int32_t>(rank),
                         .expected = static_cast<double>(result_.reference_losses[i]),
                         .found = static_cast<double>(losses[i])};
      }
    }
  }

  [[nodiscard]] Dtype dtype_of(StateTensor tensor) const {
    return tensor.kind == StateKind::value ? storage_ : Dtype::f32;
  }
  /// The most exact form of the parameters, behind the last step.
  [[nodiscard]] bool is_measured(std::int64_t step, StateTensor tensor) const {
    return step == runs_.session.steps &&
           tensor.kind == (storage_ == Dtype::f32 ? StateKind::value : StateKind::master);
  }

  /// Digests say where; the values are those of another run of the reference.
  Result<void> look_again() {
    const std::optional<StateTensor> wanted = result_.first ? result_.first->tensor : std::nullopt;
    if (!wanted && !runs_.measure) return {};
    std::deque<StateWatch> again;
    if (Result<void> r = run_reference(again,
                                       [&](std::int64_t step, StateTensor tensor) {
                                         return (wanted && step == result_.first->step && tensor == *wanted) ||
                                                (runs_.measure && is_measured(step, tensor));
                                       });
        !r)
      return r;
    if (wanted)
      if (Result<void> r = name_element(*wanted, again); !r) return r;
    if (runs_.measure) measure(again);
    return {};
  }

  Result<void> name_element(StateTensor tensor, const std::deque<StateWatch>& again) {
    FirstDifference& first = *result_.first;
    const Dtype dtype = dtype_of(tensor);
    const auto size = static_cast<std::size_t>(bytes_per_element(dtype));
    std::vector<std::int32_t> ranks;  // that show something else there
    for (std::size_t rank = 0; rank < watches_.size(); ++rank) {
      const auto& own = watches_[rank].first();
      if (!own || own->step != first.step) continue;
      first.parameters = std::max(first.parameters, watches_[rank].parameters());
      if (own->tensor == tensor) ranks.push_back(static_cast<std::int32_t>(rank));
    }
    const std::size_t part = part_of(ranks.front());
    const std::vector<std::byte>* expected = again[part].kept(first.step, tensor);
    const std::vector<std::byte>& found = watches_[static_cast<std::size_t>(ranks.front())].first()->bytes;
    const auto apart = expected == nullptr
                           ? found.begin()
                           : std::mismatch(found.begin(), found.end(), expected->begin(), expected->end()).first;
    if (expected == nullptr || apart == found.end())
      return Error{.code = Errc::internal,
                   .what = "stage 0 did not train the same twice",
                   .where = "step " + std::to_string(first.step),
                   .help = "a fault of this program, or of this machine's memory"};
    first.element = static_cast<std::int64_t>(static_cast<std::size_t>(apart - found.begin()) / size);
    first.expected = element_of(*expected, dtype, first.element);
    first.found = element_of(found, dtype, first.element);
    first.rank = rank_with(tensor, first.element, ranks);
    return {};
  }

  /// What all ranks of a shard group see differ comes from the one that steps it, where one does; else it is a copy
  /// that is wrong.
  [[nodiscard]] std::int32_t rank_with(StateTensor tensor, std::int64_t element,
                                       const std::vector<std::int32_t>& ranks) const {
    const std::int32_t seen = ranks.front();
    const RankGroup group = plan::members(topology_, plan::Group::shard, seen);
    std::vector<std::int32_t> stepping;
    for (std::int32_t i = 0; i < group.count; ++i) {
      const std::int32_t rank = group.first + i * group.stride;
      if (std::ranges::find(ranks, rank) == ranks.end()) return seen;
      if (steps(rank, tensor, element)) stepping.push_back(rank);
    }
    return stepping.size() == 1 ? stepping.front() : seen;
  }

  [[nodiscard]] bool steps(std::int32_t rank, StateTensor tensor, std::int64_t element) const {
    const plan::Plan& plan = runs_.plans->of_rank(rank);
    const plan::PhaseOps* const phase = plan.find(Phase::first_step);
    if (phase == nullptr) return false;
    const std::int32_t shard = plan::position(topology_, rank).shard;
    for (const plan::Op& op : phase->ops) {
      const auto* const a = std::get_if<plan::OptimizerStep>(&op.action);
      if (a == nullptr) continue;
      const Elems begin{a->first_elem.count() + shard * a->rank_stride_elems.count()};
      for (const plan::ParamRange& p :
           plan::param_ranges(plan.flats[static_cast<std::size_t>(a->flat)], begin, begin + a->elems))
        if (p.param.value == tensor.param && p.first.count() <= element && element < p.first.count() + p.elems.count())
          return true;
    }
    return false;
  }

  void measure(const std::deque<StateWatch>& again) {
    LargestDifference& largest = result_.largest.emplace();
    const StateKind kind = storage_ == Dtype::f32 ? StateKind::value : StateKind::master;
    const auto count = static_cast<std::int32_t>(runs_.plans->classes.front().model->parameters.size());
    for (std::size_t part = 0; part < parts(); ++part)
      for (std::int32_t param = 0; param < count; ++param) {
        const StateTensor tensor{.param = param, .kind = kind};
        const std::vector<std::byte>* expected = again[part].kept(runs_.session.steps, tensor);
        const std::vector<std::byte>* found = watches_[part].kept(runs_.session.steps, tensor);
        if (expected == nullptr || found == nullptr) continue;
        double apart = 0;
        double most = 0;
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(found->size() / sizeof(float)); ++i) {
          const double e = element_of(*expected, Dtype::f32, i);
          apart = std::max(apart, std::abs(element_of(*found, Dtype::f32, i) - e));
          most = std::max(most, std::abs(e));
        }
        const double relative = most > 0 ? apart / most : apart;
        if (relative > largest.relative) largest = {.relative = relative, .param = param};
      }
  }

  const AgreementRuns& runs_;
  plan::Topology topology_;
  Dtype storage_;
  std::deque<StateWatch> references_;
  std::deque<StateWatch> watches_;
  Agreement result_;
};

}  // namespace

Result<Agreement> compare_runs(const AgreementRuns& runs) {
  return Comparing(runs).run();
}

}  // namespace shard::train
