// Options that other frameworks do not have, refused beside --like.
#include "sim/commands/like_options.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "sim/cli/contradiction.h"
#include "sim/commands/scaler_options.h"
#include "sim/strategy/fields.h"

namespace shard::commands {
namespace {

/// Beside the fields that are ours alone.
constexpr const char* kBeside[] = {"host-capacity", "disk-path"};

}  // namespace

Error no_meaning_for_like(const cli::Command& command, std::string_view option, const char* why) {
  return cli::contradiction(command.describe(option) + " has no meaning for " + command.describe("like") + ": " + why,
                            "leave --" + std::string(option) + " out");
}

Result<void> refuse_own_options(const cli::Command& command, std::initializer_list<const char*> options,
                                std::initializer_list<std::string_view> allowed) {
  constexpr const char* kWhy = "that is for our own strategies";
  for (const char* option : options)
    if (command.given(option)) return no_meaning_for_like(command, option, kWhy);
  const auto given = [&](std::string_view option) { return command.has(option) && command.given(option); };
  for (const plan::Field& field : plan::fields())
    if (field.ours && std::ranges::find(allowed, field.option) == allowed.end() && given(field.option))
      return no_meaning_for_like(command, field.option, kWhy);
  for (const std::string_view option : scaler_option_names())
    if (given(option)) return no_meaning_for_like(command, option, kWhy);
  for (const char* option : kBeside)
    if (given(option)) return no_meaning_for_like(command, option, kWhy);
  return {};
}

}  // namespace shard::commands
