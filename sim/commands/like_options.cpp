// Asks the tables of fields and of frameworks who has an option.
#include "sim/commands/like_options.h"

#include <string>
#include <vector>

#include "sim/cli/contradiction.h"
#include "sim/commands/option_owners.h"
#include "sim/like/frameworks/option_fields.h"

namespace shard::commands {
namespace {

/// "a, b WORD c".
std::string listed(const std::vector<std::string>& names, std::string_view word) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " " + std::string(word) + " ") + names[i];
  return text;
}

/// "fsdp1 has it".
std::string who_has(std::string_view option) {
  std::vector<std::string> names = like::who_takes(option);
  if (has_meaning_for(nullptr, option)) names.emplace_back("Shardscope's own executor");
  return listed(names, "and") + (names.size() == 1 ? " has it" : " have it");
}

}  // namespace

Error no_meaning_for_like(const cli::Command& command, std::string_view option, std::string_view why) {
  return cli::contradiction(
      command.describe(option) + " has no meaning for " + command.describe("like") + ": " + std::string(why),
      "leave --" + std::string(option) + " out");
}

Result<void> refuse_other_options(const cli::Command& command, const like::Framework* framework,
                                  const plan::Strategy& strategy) {
  for (const cli::Effective& each : command.effective()) {
    const std::string& option = each.name;
    if (!command.given(option)) continue;
    // Of what rests on disk a framework's rules say more than that they have no directory.
    if (framework != nullptr && option == "disk-path" && strategy.placement.rests_on_disk()) continue;
    if (has_meaning_for(framework, option)) {
      const std::int32_t only = like::only_stage_of(option);
      if (framework == nullptr || only == 0 || only == strategy.stage) continue;
      return cli::contradiction(command.describe(option) + " is of stage " + std::to_string(only) +
                                    ", and this is stage " + std::to_string(strategy.stage),
                                "--stage " + std::to_string(only) + ", or leave --" + option + " out");
    }
    const std::string leave = "leave --" + option + " out";
    if (framework == nullptr)
      return cli::contradiction(
          command.describe(option) + " has no meaning for Shardscope's own executor: " + who_has(option),
          "--like " + listed(like::who_takes(option), "or") + ", or " + leave);
    return cli::contradiction(
        command.describe(option) + " has no meaning for --like " + framework->full_name() + ": " + who_has(option),
        leave);
  }
  return {};
}

}  // namespace shard::commands
