// The table of a strategy's fields as options.
#pragma once

#include <string_view>

#include "sim/cli/command_line.h"
#include "sim/strategy/fields.h"

namespace shard::commands {

/// Declares the option of a row whose source is the option's value, or of an asked one that is read elsewhere as
/// `target`'s type; its default is what `strategy` has. `help` in place of the row's. `strategy` lives as long as the
/// Command.
cli::Option add_field(cli::Group& group, const plan::Field& field, plan::Strategy& strategy,
                      std::string_view help = {});

/// The same of a row whose option is read into something else than the field.
template <class T>
cli::Option add_field_as(cli::Group& group, const plan::Field& field, T* target) {
  cli::Option option =
      group.add(std::string(field.option), target, std::string(field.value_name), std::string(field.help));
  return field.common ? option.common() : option;
}

}  // namespace shard::commands
