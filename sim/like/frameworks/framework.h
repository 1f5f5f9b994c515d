// The frameworks whose memory is predicted: one row each. What --like takes, its help, which options a framework has,
// what a configuration may set and what stage is meant where none is said are all asked of the row.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/like/eager/sharding.h"
#include "sim/like/eager/versions.h"
#include "sim/like/gemini_options.h"
#include "sim/model/graph.h"
#include "traces/base/result.h"

namespace shard::like {

/// What tells a framework's memory.
enum class Teller : std::uint8_t {
  eager,        ///< operators of eager PyTorch 2 (sim/like/eager)
  pytorch_1_8,  ///< passes over our own plan, of an mlp
  gemini,       ///< Colossal-AI's chunks
};

struct Framework {
  std::string_view name;
  std::string_view version;                          ///< whose rules these are; a patch of it has the same
  std::span<const std::string_view> releases{};      ///< others that have the same rules
  std::span<const eager::Version> older{};           ///< of `library`, of which some rules differ (eager/versions.h)
  eager::Library library = eager::Library::pytorch;  ///< whose releases its versions are
  std::string_view help;
  Teller teller = Teller::eager;
  eager::Framework sharding = eager::Framework::none;  ///< of Teller::eager: what puts the model over ranks
  eager::MakeSharding make = nullptr;                  ///< and its rules; null: nothing is around the program
  /// Of a framework with no checks in simulate_eager.cpp: Errc::contradiction for what its rules lack.
  Result<void> (*check)(const eager::ShardingOptions& options) = nullptr;
  GeminiRules gemini{};          ///< of Teller::gemini
  std::int32_t usual_stage = 0;  ///< where none is said
  /// Options that it has beside kSharedOptions, by name: fields of a strategy (sim/strategy/fields.h), of programs
  /// (option_fields.h), and those that commands add (Gemini's, the allocator's, "trace").
  std::vector<std::string_view> options{};

  /// NAME@VERSION.
  [[nodiscard]] std::string full_name() const { return std::string(name) + "@" + std::string(version); }
  [[nodiscard]] bool takes(std::string_view option) const;
};

/// The newest of a name first.
[[nodiscard]] std::span<const Framework> frameworks();
/// The version of the row's library whose rules NAME@VERSION asks for, of a row that named_frameworks() found; the
/// newest where it says none.
[[nodiscard]] eager::Version version_asked(const Framework& framework, std::string_view name_at_version);
/// Null where our rules know no such framework over ranks.
[[nodiscard]] const Framework* framework_of(eager::Framework sharding);

/// Our own executor's name beside theirs.
inline constexpr std::string_view kOwnName = "shardscope";

/// The rows that NAME or NAME@VERSION may mean; empty for an unknown name. Several where a name without a version means
/// one for an mlp, and one for transformers.
[[nodiscard]] std::vector<const Framework*> named_frameworks(std::string_view name_at_version);
/// Which of them answers for a model; the first where none does, whose refusal says why.
[[nodiscard]] const Framework* framework_for(std::span<const Framework* const> named, const model::Model& model);
/// Errc::usage for any other name: the closest, and the list.
[[nodiscard]] Error unknown_framework(std::string_view name_at_version);

/// The names of those that have an option.
[[nodiscard]] std::vector<std::string> who_takes(std::string_view option);
/// What --like takes, a line each.
[[nodiscard]] std::string frameworks_help();

}  // namespace shard::like
