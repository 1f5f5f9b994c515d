// The one table of a strategy's fields: from it come the options of the command line and of --config files with their
// help, a strategy as text (and so a plan's hash) and as JSON, the ranges that are checked, and the options that
// answers and errors print back. What contradicts what is in rules.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/strategy/strategy.h"
#include "traces/base/mentions.h"
#include "traces/base/units.h"
#include "traces/base/word.h"

namespace shard::plan {

/// Tokens, where a model has no limit of its own, or a very long one (the default of `sequence`).
inline constexpr std::int64_t kDefaultSequence = 1024;

/// The rows, in the order in which help shows them.
enum class FieldId : std::uint8_t {
  sequence,
  world_size,
  stage,
  unit,
  partition,
  chunk_elems,
  chunk_per_tensor,
  chunk_starts,
  ownership,
  distributed,
  keep_gathered,
  reuse_shard,
  bucket_mib,
  prefetch,
  shard_group,
  tensor_parallel,
  tensor_layout,
  transport,
  device,
  micro_batch,
  global_batch,
  optimizer,
  recompute,
  precision,
  fp32_reduce_scatter,
  clip_norm,
  loss_scaling,
  predivide,
  dropout,
  threads,
  reproducible,
  evaluates,
  freeze,
  placement,
  param_placement,
  grad_placement,
  optimizer_placement,
  margin_ratio,
  non_model_peak,
  device_capacity,
};

/// Where a field's value lies in a strategy.
template <class T>
struct Member {
  const T& (*of)(const Strategy&);
  T& (*in)(Strategy&);
};
/// The same of an enumerator, with its words in order.
struct WordMember {
  std::uint8_t (*of)(const Strategy&);
  void (*set)(Strategy&, std::uint8_t);
  std::vector<Word> (*words)();
};
/// The same of a share; `disk`: it may rest on disk too.
struct ShareMember {
  Member<std::optional<Share>> member;
  bool disk;
};
using FieldPlace =
    std::variant<Member<bool>, Member<std::int32_t>, Member<std::int64_t>, Member<float>, Member<double>, Member<Elems>,
                 Member<Bytes>, Member<std::optional<Bytes>>, Member<std::vector<std::string>>,
                 Member<std::vector<std::int32_t>>, WordMember, ShareMember>;

/// What a field has to do with the option of its row.
enum class GivenBy : std::uint8_t {
  value,   ///< the option's value is the field's
  chunks,  ///< --chunk-size is a number, "none", or asks for a search
  asked,   ///< the option asks for something that the field follows from
  none,    ///< no option sets it
};

/// How a field appears in a strategy's line: a blank, `word`, a blank, the value, `behind`. A bool is `word` or
/// `otherwise` alone, and left out where that is empty.
struct InText {
  bool (*shown)(const Strategy&);
  std::string_view word{};
  std::string_view otherwise{};
  std::string_view behind{};
};

struct Field {
  FieldId id;
  FieldPlace place;
  std::string_view key;       ///< in JSON, with its unit
  std::string_view group;     ///< of options, as help titles it
  std::string_view option{};  ///< without dashes
  std::string_view alias{};
  std::string_view value_name{};
  std::string_view help{};
  std::string_view default_text{};  ///< where the default follows from the model or from other fields
  std::optional<double> least{};    ///< of the value, inclusive
  std::optional<double> most{};
  GivenBy given_by = GivenBy::value;
  bool common = false;  ///< of the options that most people need
  bool ours = false;    ///< no framework that we emulate has it
  InText text;
};

[[nodiscard]] std::span<const Field> fields();
[[nodiscard]] const Field& field(FieldId id);
/// The first row with this option; null for none.
[[nodiscard]] const Field* find_field(std::string_view option);

/// As an option takes it ("3", "module", "true", "0.5", "a,b"); empty for what is not set.
[[nodiscard]] std::string value_text(const Field& field, const Strategy& strategy);
/// The option that says so: "--stage 2", "--no-keep-gathered"; for what is asked for in other words "--clip-norm NORM".
[[nodiscard]] std::string option_text(const Field& field, const Strategy& strategy);
/// The same in an error's words.
[[nodiscard]] Piece option_piece(const Field& field, const Strategy& strategy);

/// A value as a JSON document has it: null for what is not set.
using JsonValue = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<std::string>>;
[[nodiscard]] JsonValue json_value(const Field& field, const Strategy& strategy);

}  // namespace shard::plan
