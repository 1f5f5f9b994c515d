// Leaves settings out that have no meaning beside what is given.
#include "sim/commands/foreign_settings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/read_cluster.h"
#include "sim/commands/option_owners.h"
#include "sim/like/frameworks/framework.h"
#include "sim/strategy/fields.h"
#include "sim/strategy/rules.h"

namespace shard::commands {
namespace {

using foreign::ForeignConfig;
using foreign::Setting;

constexpr std::string_view kTakesNone = "no option of this command takes it";

/// Of training alone, and why other commands do without.
constexpr std::string_view kTrainingOptions =
    "lr|beta1|beta2|epsilon|weight-decay|lr-schedule|warmup-steps|min-lr|seed|data";

bool is_in(std::string_view list, std::string_view name) {
  const std::vector<std::string_view> words = plan::words_in(list);
  return std::ranges::find(words, name) != words.end();
}

class Keeper {
 public:
  Keeper(const cli::Command& command, ForeignConfig& config) : command_(command), config_(config) {
    for (const cli::Effective& each : command.effective()) values_[each.name] = each.value;
  }

  void leave(std::string_view option, const std::string& reason) {
    const auto at = std::ranges::find(config_.settings, option, &Setting::option);
    const std::string pointer = at->pointer;
    config_.settings.erase(at);
    if (std::ranges::find(config_.settings, pointer, &Setting::pointer) != config_.settings.end()) return;
    std::erase(config_.understood, pointer);
    if (std::ranges::find(config_.left_out, pointer, &foreign::LeftOut::key) == config_.left_out.end())
      config_.left_out.push_back({pointer, reason});
  }

  /// What is in force once the file is read.
  [[nodiscard]] std::string value(std::string_view option) const {
    if (!command_.has(option)) return "";
    if (!command_.typed(option))
      if (const Setting* const set = setting(option)) return set->value;
    const auto at = values_.find(option);
    return at == values_.end() ? std::string() : at->second;
  }
  [[nodiscard]] bool given(std::string_view option) const {
    return setting(option) != nullptr || (command_.has(option) && command_.typed(option));
  }
  [[nodiscard]] const Setting* setting(std::string_view option) const {
    const auto at = std::ranges::find(config_.settings, option, &Setting::option);
    return at == config_.settings.end() ? nullptr : &*at;
  }

  /// One of the two of a rule goes, so that it is kept: the file's.
  bool mend(const plan::Rule& rule) {
    if (rule.also != nullptr) return false;
    if (rule.broken == plan::Broken::both_given && !given(rule.other)) return false;
    for (const std::string_view unless : plan::words_in(rule.unless))
      if (given(unless)) return false;
    if (!rule.others.hold(value(rule.other))) return false;
    for (const std::string_view option : plan::words_in(rule.options)) {
      const bool concerned = rule.broken == plan::Broken::by_values ? command_.has(option) : given(option);
      if (!concerned || !rule.values.hold(value(option))) continue;
      const bool own = setting(option) != nullptr;
      if (!own && setting(rule.other) == nullptr) continue;
      const std::string gone(own ? option : rule.other);
      const std::string beside(own ? rule.other : option);
      leave(gone, "has no meaning beside --" + beside + " " + value(beside));
      return true;
    }
    return false;
  }

 private:
  const cli::Command& command_;
  ForeignConfig& config_;
  std::map<std::string, std::string, std::less<>> values_;
};

std::vector<std::string> options_of(const ForeignConfig& config) {
  std::vector<std::string> options;
  for (const Setting& each : config.settings) options.push_back(each.option);
  return options;
}

/// The framework that answers: what --like says, else whose configuration it is. Null: our own executor.
const like::Framework* framework_in_force(const cli::Command& command, const ForeignConfig& config) {
  if (!framework_may_answer(command)) return nullptr;
  const std::string name = command.typed("like").value_or(config.framework);
  const std::vector<const like::Framework*> named = like::named_frameworks(name);
  return named.empty() ? nullptr : named.front();
}

/// Whether a run with the setting is another one than the framework's rules tell: memory that rests elsewhere, models
/// and shards in groups. Where nobody asked for the framework it is kept, for the rules to refuse, so that whoever
/// takes it answers. A key that the framework has an option of its own for is no such one.
bool makes_another_run(const ForeignConfig& config, const like::Framework* framework, std::string_view option) {
  const plan::Field* const field = plan::find_field(option);
  const bool elsewhere = field != nullptr && field->group == "Placement";
  if (framework == nullptr || (!elsewhere && !is_in("disk-path|tensor-parallel|shard-group", option))) return false;
  const auto at = std::ranges::find(config.settings, option, &Setting::option);
  if (is_in("device|0|1", at->value)) return false;
  if (option == "disk-path") return true;  // no framework's rules know a disk
  return std::ranges::none_of(config.settings, [&](const Setting& other) {
    return other.pointer == at->pointer && framework->takes(other.option);
  });
}

/// Whether state rests in the directory that the setting names: whoever is asked for refuses that, not the directory.
bool rests_there(const Keeper& keeper, std::string_view option) {
  return option == "disk-path" && keeper.value("optimizer-placement") == "disk";
}

}  // namespace

bool framework_may_answer(const cli::Command& command) {
  if (!command.has("like")) return false;
  if (const std::optional<std::string> like = command.typed("like")) return *like != like::kOwnName;
  const std::optional<std::string> name = command.typed("cluster");
  if (!name) return false;
  const Result<cluster::Cluster> machine = cluster::read_cluster(*name);
  return machine && machine->device == cluster::DeviceKind::cuda;
}

void keep_what_makes_sense(const cli::Command& command, ForeignConfig& config) {
  Keeper keeper(command, config);
  const like::Framework* const framework = framework_in_force(command, config);
  const bool asked = command.has("like") && command.typed("like");
  const bool of_list = command.has("parameters") && command.typed("parameters");
  for (const std::string& option : options_of(config)) {
    if (!command.has(option))
      keeper.leave(option, is_in(kTrainingOptions, option)
                               ? "changes neither memory nor time; shardscope train takes it as --" + option
                               : std::string(kTakesNone) + " (elsewhere it is --" + option + ")");
    else if (command.typed(option))
      keeper.leave(option, "overridden by --" + option + " " + *command.typed(option));
    else if (!has_meaning_for(framework, option) &&
             ((asked && !rests_there(keeper, option)) || !makes_another_run(config, framework, option)))
      keeper.leave(option, "has no meaning for " +
                               (framework == nullptr ? "Shardscope's own executor" : framework->full_name()));
    else if (of_list && option != "world-size")
      keeper.leave(option, "is of a training step, and --parameters is a list");
  }
  // A setting that goes may bring two others together.
  for (bool mended = true; mended;) {
    mended = false;
    for (const plan::Rule& rule : plan::rules()) mended = keeper.mend(rule) || mended;
  }
}

}  // namespace shard::commands
