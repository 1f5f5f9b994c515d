// Declares an option by its row.
#include "sim/commands/eager_options.h"

#include <optional>
#include <string>
#include <vector>

#include "sim/like/frameworks/option_fields.h"

namespace shard::commands {
namespace {

/// Declares by where the value lies.
struct DeclareOption {
  cli::Group& group;
  const like::OptionField& field;
  like::EagerOptions& options;

  void operator()(const like::ChoicePlace& place) const {
    std::vector<cli::Group::Named> words;
    for (const like::ChoicePlace::Choice& each : place.choices)
      words.push_back({std::string(each.name), std::string(each.help)});
    group.add_words(
        std::string(field.option), words, [of = place.of, o = &options] { return of(*o); },
        [set = place.set, o = &options](std::size_t at) { set(*o, at); }, std::string(field.help));
  }
  void operator()(const like::FlagPlace& place) const {
    group.add_flag(std::string(field.option), &(options.*place.member), std::string(field.help));
  }
  void operator()(const like::NumberPlace& place) const {
    group.add(std::string(field.option), place.in(options), std::string(field.value_name), std::string(field.help))
        .least(place.least)
        .most(place.most);
  }
  void operator()(const like::VersionPlace& place) const {
    const std::string known = like::eager::compared_text(place.library);
    const auto read = [place, known, o = &options](std::string_view text, std::string_view where,
                                                   const cli::Range&) -> Result<void> {
      const std::optional<like::eager::Version> version = like::eager::version_of(text);
      const std::string name(like::eager::library_row(place.library).name);
      if (!version || !like::eager::is_known(place.library, *version))
        return Error{Errc::usage, "no rules are known for '" + name + " " + std::string(text) + "'", std::string(where),
                     "one of " + known + "; shardscope dryrun runs what is installed"};
      o->*place.member = *version;
      return {};
    };
    group
        .add_custom(std::string(field.option), std::string(field.value_name),
                    std::string(field.help) + "\ncompared: " + known, read)
        .default_text(like::eager::to_text(options.*place.member));
  }
};

}  // namespace

void add_eager_options(cli::Command& command, like::EagerOptions& options, AllocatorFlags& allocator) {
  cli::Group group = command.group("Programs of other frameworks");
  for (const like::OptionField& field : like::option_fields())
    std::visit(DeclareOption{group, field, options}, field.place);
  add_allocator_options(group, allocator, true);
}

}  // namespace shard::commands
