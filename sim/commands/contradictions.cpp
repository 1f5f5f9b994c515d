// The table, and the one loop over it.
#include "sim/commands/contradictions.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

/// Values of an option, as they are typed.
struct Values {
  bool listed = false;  ///< those of the list, or else all but those
  std::vector<std::string_view> list{};
  [[nodiscard]] bool hold(std::string_view value) const {
    return (std::ranges::find(list, value) != list.end()) == listed;
  }
};
const Values kAny{};
Values one_of(std::initializer_list<std::string_view> list) {
  return {true, list};
}
Values other_than(std::initializer_list<std::string_view> list) {
  return {false, list};
}

/// Whether the second option of a row counts when it is given nowhere, by its default.
enum class Default { ignored, counts };

struct Row {
  std::vector<std::string_view> options;  ///< each of them, when given
  Values values;
  std::string_view other;
  Values others;
  Default by_default = Default::ignored;
  std::string_view why;                    ///< between the two; {} is the other
  std::string_view help;                   ///< {} is the option without dashes
  std::vector<std::string_view> unless{};  ///< given: then the two make sense beside each other
};

constexpr std::string_view kNoMeaning = "has no meaning for {}";

const std::vector<Row>& rows_of_all_commands() {
  static const std::vector<Row> kRows{
      {{"chunk-size"},
       kAny,
       "chunk-bytes",
       kAny,
       Default::ignored,
       "and {} both set the chunk size",
       "keep one of them"},
      {{"chunk-size", "chunk-bytes"},
       kAny,
       "unit",
       other_than({"chunk"}),
       Default::counts,
       kNoMeaning,
       "--unit chunk, or leave --{} out"},
      {{"distributed-storage"},
       one_of({"true"}),
       "unit",
       other_than({"chunk"}),
       Default::ignored,
       "is about chunks, and {} makes none",
       "--unit chunk, or leave --{} out"},
      {{"prefetch"},
       other_than({"0"}),
       "stage",
       one_of({"0", "1", "2"}),
       Default::ignored,
       "has nothing to run ahead of: {} gathers no parameters",
       "--stage 3, or leave --{} out",
       {"placement", "param-placement", "grad-placement", "optimizer-placement"}},
      {{"partition"},
       one_of({"parameter"}),
       "stage",
       one_of({"0"}),
       Default::ignored,
       "says who owns which optimizer state, and {} leaves all of it on every rank",
       "--stage 1, or leave --{} out"},
      {{"tensor-parallel-layout"},
       kAny,
       "tensor-parallel",
       one_of({"1"}),
       Default::ignored,
       "says how ranks split a model, and {} splits none",
       "--tensor-parallel 2, or leave --{} out"},
      {{"param-placement", "grad-placement", "optimizer-placement"},
       other_than({"device"}),
       "placement",
       one_of({"device"}),
       Default::ignored,
       "says another memory than {}",
       "--placement static"},
      {{"param-placement", "grad-placement", "optimizer-placement"},
       other_than({"host"}),
       "placement",
       one_of({"host"}),
       Default::ignored,
       "says another memory than {}",
       "--placement static"},
      {{"gpu-margin-mem-ratio", "from-trace"},
       kAny,
       "placement",
       other_than({"auto"}),
       Default::counts,
       kNoMeaning,
       "--placement auto, or leave --{} out"},
      {{"disk-path"},
       kAny,
       "optimizer-placement",
       other_than({"disk"}),
       Default::counts,
       "is for optimizer state on disk, and {} puts none there",
       "--optimizer-placement disk, or leave --{} out"},
      {{"beta1", "beta2", "epsilon"},
       kAny,
       "optimizer",
       one_of({"sgd"}),
       Default::ignored,
       "is of the moments of adam and adamw, and {} has none",
       "--optimizer adamw, or leave --{} out"},
      {{"min-lr"}, kAny, "lr-schedule", one_of({"constant"}), Default::counts, kNoMeaning, "--lr-schedule cosine"},
  };
  return kRows;
}

const std::vector<Row>& rows_of_search() {
  static const std::vector<std::string_view> kForecast{"forecast-ops",
                                                       "stage",
                                                       "prefetch",
                                                       "cluster",
                                                       "sequence",
                                                       "micro-batch",
                                                       "global-batch",
                                                       "optimizer",
                                                       "recompute",
                                                       "clip-norm",
                                                       "dropout",
                                                       "threads",
                                                       "reproducible",
                                                       "fp32-reduce-scatter",
                                                       "gradient-predivide-factor"};
  static const std::vector<Row> kRows{
      {{"grids"},
       kAny,
       "rule",
       other_than({"gemini-v0.1.9"}),
       Default::ignored,
       kNoMeaning,
       "--rule gemini-v0.1.9, or leave --{} out"},
      {{"search-interval"},
       kAny,
       "rule",
       other_than({"gemini"}),
       Default::ignored,
       kNoMeaning,
       "--rule gemini, or leave --{} out"},
      {{"filter"},
       kAny,
       "rule",
       one_of({"exact", "variable"}),
       Default::ignored,
       kNoMeaning,
       "--rule gemini, or leave --no-filter out"},
      {{"forecast"},
       one_of({"true"}),
       "parameters",
       kAny,
       Default::ignored,
       "runs a model, and {} is a list of parameters",
       "--model instead of --parameters, or leave --{} out"},
      {kForecast, kAny, "parameters", kAny, Default::ignored, "is of a training step, and {} is a list of parameters",
       "--model instead of --parameters, or leave --{} out"},
      {kForecast, kAny, "forecast", one_of({"false"}), Default::ignored, "is of the forecast, and {} asks for none",
       "leave one of them out"},
  };
  return kRows;
}

std::string filled(std::string_view text, std::string_view with) {
  std::string result(text);
  if (const std::size_t at = result.find("{}"); at != std::string::npos) result.replace(at, 2, with);
  return result;
}

/// The values in force of a command's options.
class Options {
 public:
  explicit Options(const cli::Command& command) : command_(command) {
    for (cli::Effective& option : command.effective()) options_.emplace(option.name, std::move(option));
  }
  [[nodiscard]] bool given(std::string_view name) const {
    const auto at = options_.find(name);
    return at != options_.end() && at->second.origin.source != cli::Source::fallback;
  }
  [[nodiscard]] std::string_view value(std::string_view name) const {
    const auto at = options_.find(name);
    return at == options_.end() ? std::string_view{} : at->second.value;
  }
  [[nodiscard]] Result<void> check(const Row& row) const {
    if (row.by_default == Default::ignored && !given(row.other)) return {};
    if (!row.others.hold(value(row.other))) return {};
    if (std::ranges::any_of(row.unless, [&](std::string_view name) { return given(name); })) return {};
    for (const std::string_view option : row.options)
      if (given(option) && row.values.hold(value(option)))
        return cli::contradiction(command_.describe(option) + ' ' + filled(row.why, command_.describe(row.other)),
                                  filled(row.help, option));
    return {};
  }

 private:
  const cli::Command& command_;
  std::map<std::string, cli::Effective, std::less<>> options_;
};

}  // namespace

Result<void> check_contradictions(const cli::Command& command) {
  const Options options(command);
  if (command.name() == "search")
    for (const Row& row : rows_of_search())
      if (Result<void> ok = options.check(row); !ok) return ok;
  for (const Row& row : rows_of_all_commands())
    if (Result<void> ok = options.check(row); !ok) return ok;
  return {};
}

}  // namespace shard::commands
