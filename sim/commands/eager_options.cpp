// Declares an option by its row.
#include "sim/commands/eager_options.h"

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
};

}  // namespace

void add_eager_options(cli::Command& command, like::EagerOptions& options, AllocatorFlags& allocator) {
  cli::Group group = command.group("Programs of other frameworks");
  for (const like::OptionField& field : like::option_fields())
    std::visit(DeclareOption{group, field, options}, field.place);
  add_allocator_options(group, allocator, true);
}

}  // namespace shard::commands
