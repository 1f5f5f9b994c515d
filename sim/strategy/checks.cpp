// Whether a strategy contradicts itself or the model.
#include "sim/strategy/checks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <variant>

#include "sim/model/freeze.h"
#include "sim/model/graph_limits.h"
#include "sim/strategy/fields.h"
#include "sim/strategy/rules.h"

namespace shard::plan {
namespace {

/// A plan names every micro-step's ops.
constexpr std::int64_t kMaxMicroSteps = 1 << 20;

constexpr const char* kStrategy = "strategy";

Error contradiction(std::string what, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(what), .where = kStrategy, .help = std::move(help)};
}

Piece said(const Strategy& s, FieldId id) {
  return option_piece(field(id), s);
}

std::string digits(std::int64_t number) {
  return std::to_string(number);
}

/// "world size 8", or where those are not all "the 4 ranks that ...".
std::string ranks_that(const Strategy& s, std::int32_t count, const char* what) {
  if (count == s.world_size) return "world size " + digits(count);
  return "the " + digits(count) + " ranks that " + what;
}

/// A number as a user types it.
std::string plain(double value) {
  return value == std::floor(value) && std::abs(value) < 9e18 ? digits(static_cast<std::int64_t>(value))
                                                              : std::to_string(value);
}

/// Every number is in the range of its row.
Result<void> check_ranges(const Strategy& s) {
  for (const Field& f : fields()) {
    if (!f.least && !f.most) continue;
    const JsonValue value = json_value(f, s);
    const auto* whole = std::get_if<std::int64_t>(&value);
    const auto* real = std::get_if<double>(&value);
    const double number = whole != nullptr ? static_cast<double>(*whole) : real != nullptr ? *real : 0;
    const bool above = !f.least || number >= *f.least;
    if (above && (!f.most || number <= *f.most)) continue;
    const double nearest = above ? *f.most : *f.least;
    return contradiction_of(
        {option_piece(f, s), std::string(" is not at ") + (above ? "most " : "least ") + plain(nearest)}, kStrategy,
        "--" + std::string(f.option) + ' ' + plain(nearest));
  }
  return {};
}

/// Hybrid sharding divides the data-parallel ranks evenly.
Result<void> check_shard_group(const Strategy& s) {
  if (s.shard_group == 0 || (s.shard_group > 1 && s.data_parallel() % s.shard_group == 0)) return {};
  return contradiction_of(
      {said(s, FieldId::shard_group), " does not divide the " + digits(s.data_parallel()) + " data-parallel ranks"},
      kStrategy, "--shard-group " + digits(s.data_parallel()));
}

Result<void> check_placement(const Strategy& s) {
  for (const Field& f : fields()) {
    const auto* kind = std::get_if<ShareMember>(&f.place);
    if (kind == nullptr || !kind->member.of(s)) continue;
    const Share& share = *kind->member.of(s);
    if (!(share.on_device >= 0 && share.on_device <= 1))
      return contradiction_of({option_piece(f, s), " is no fraction between 0 and 1"}, kStrategy, "0.5");
    if (share.on_device < 1 && share.rest != Memory::host && (share.rest != Memory::disk || !kind->disk))
      return contradiction_of({option_piece(f, s), ": only optimizer state may rest on disk"}, kStrategy,
                              "--" + std::string(f.option) + " host");
  }
  if (s.placement.policy == PlacementPolicy::automatic && s.placement.device_capacity.count() <= 0)
    return contradiction_of({said(s, FieldId::placement), " has no device memory to fill"}, kStrategy,
                            "--device-capacity BYTES");
  return {};
}

/// Batches that ranks share evenly, sequences that the model has positions for.
Result<void> check_batches(const model::Model& model, const Strategy& s) {
  const std::int64_t step = s.micro_batch * s.data_parallel();
  if (s.global_batch < step || s.global_batch % step != 0)
    return contradiction("global batch " + digits(s.global_batch) + " is not a positive multiple of micro-batch " +
                             digits(s.micro_batch) + " x " + ranks_that(s, s.data_parallel(), "work on different data"),
                         "--global-batch " + digits(std::max<std::int64_t>(1, s.global_batch / step) * step));
  if (s.accumulation() > kMaxMicroSteps)
    return contradiction("global batch " + digits(s.global_batch) + " takes " + digits(s.accumulation()) +
                             " micro-steps a step; at most " + digits(kMaxMicroSteps) + " are supported",
                         "--global-batch " + digits(step * kMaxMicroSteps) + " or a larger --micro-batch");
  if (model.family == model::Family::mlp && s.sequence != 1)
    return contradiction_of({said(s, FieldId::sequence), " has no meaning for an mlp, whose batches count samples"},
                            kStrategy, "leave --sequence out");
  if (model.max_sequence > 0 && s.sequence > model.max_sequence)
    return contradiction_of(
        {said(s, FieldId::sequence), " exceeds the " + digits(model.max_sequence) + " positions of " + model.name},
        kStrategy, "--sequence " + digits(model.max_sequence));
  return {};
}

/// Chunks of their own sizes begin at parameters that there are, trained and frozen ones each at their first.
Result<void> check_chunk_starts(const model::Model& model, const Strategy& s) {
  const char* help = "--chunk-size variable";
  if (s.unit != UnitKind::chunk || s.chunk_per_tensor)
    return contradiction("chunks of their own sizes without unit chunk, or with a chunk per tensor", help);
  const std::vector<std::int32_t>& starts = s.chunk_starts;
  if (starts.front() < 0 || starts.back() >= static_cast<std::int64_t>(model.parameters.size()) ||
      std::ranges::adjacent_find(starts, std::ranges::greater_equal{}) != starts.end())
    return contradiction("chunks do not begin at parameters of " + model.name + " in ascending order", help);
  const Result<model::Model> part = model::freeze(model, s.freeze);
  if (!part) return part.error();
  for (const bool frozen : {false, true})
    for (std::int32_t p = 0; p < static_cast<std::int64_t>(model.parameters.size()); ++p) {
      if (part->is_frozen(model::ParamId{p}) != frozen) continue;
      if (!std::ranges::binary_search(starts, p))
        return contradiction(std::string("no chunk begins at the first ") + (frozen ? "frozen" : "trained") +
                                 " parameter, '" + model.parameters[static_cast<std::size_t>(p)].name + "'",
                             help);
      break;
    }
  return {};
}

Result<void> check_chunks(const model::Model& model, const Strategy& s) {
  if (s.has_variable_chunks()) return check_chunk_starts(model, s);
  if (s.unit != UnitKind::chunk || s.chunk_per_tensor) return {};
  if (s.chunk_elems.count() < 1) return contradiction("unit chunk without a chunk size", "--chunk-size search");
  const std::string size = "chunk size " + digits(s.chunk_elems.count()) + " elements";
  if (s.chunk_elems.count() > model::kMaxValueElements)
    return contradiction(size + " is more than 2^48, which is not supported", "--chunk-size search");
  if (s.chunk_elems.count() % s.cuts() != 0)
    return contradiction(size + " is not a multiple of " + ranks_that(s, s.shard_degree(), "share its shards"),
                         "--chunk-size " + digits(round_up(s.chunk_elems, s.cuts()).count()));
  return {};
}

}  // namespace

Result<void> check_tensor_parallel(const model::Model& model, const Strategy& s) {
  if (s.tensor_parallel < 1 || s.world_size % s.tensor_parallel != 0)
    return contradiction_of({said(s, FieldId::tensor_parallel), " does not divide ", said(s, FieldId::world_size)},
                            kStrategy, "--tensor-parallel " + digits(std::gcd(s.tensor_parallel, s.world_size)));
  return model::check_split(model, s.tensor_parallel, s.tensor_layout);
}

Result<void> check(const model::Model& model, const Strategy& s) {
  if (Result<void> ok = check_ranges(s); !ok) return ok;
  if (Result<void> ok = check_tensor_parallel(model, s); !ok) return ok;
  if (Result<void> ok = check_shard_group(s); !ok) return ok;
  if (Result<void> ok = check_placement(s); !ok) return ok;
  if (!s.freeze.empty())
    if (Result<model::Model> frozen = model::freeze(model, s.freeze); !frozen) return frozen.error();
  if (!(s.dropout < 1))
    return contradiction_of({said(s, FieldId::dropout), " is not a probability below 1"}, kStrategy, "--dropout 0.1");
  if (Result<void> ok = check_batches(model, s); !ok) return ok;
  if (Result<void> ok = check_rules(s); !ok) return ok;
  return check_chunks(model, s);
}

}  // namespace shard::plan
