// Declares an option by the type of its field.
#include "sim/commands/field_options.h"

#include <cassert>
#include <string>
#include <type_traits>
#include <vector>

namespace shard::commands {
namespace {

using plan::Share;

/// "device", "host", "disk" or a fraction that stays on the device.
cli::Reader share_reader(std::optional<Share>& target, bool disk) {
  return [&target, disk](std::string_view text, std::string_view where, const cli::Range&) -> Result<void> {
    if (text == "device") return target = plan::kOnDevice, Result<void>();
    if (text == "host") return target = plan::kOnHost, Result<void>();
    if (text == "disk" && disk) return target = plan::kOnDisk, Result<void>();
    const std::string help = std::string("device, host, ") + (disk ? "disk, " : "") +
                             "or the fraction of bytes that stays on the device, from 0 to 1";
    if (text == "disk")
      return Error{.code = Errc::contradiction,
                   .what = "only optimizer state may rest on disk",
                   .where = std::string(where),
                   .help = help};
    double fraction = 0;
    if (!cli::read_value(text, where, cli::Range{}, fraction))
      return Error{.code = Errc::usage,
                   .what = "'" + std::string(text) + "' is neither a memory nor a fraction",
                   .where = std::string(where),
                   .help = help};
    if (!(fraction >= 0 && fraction <= 1))
      return Error{.code = Errc::usage,
                   .what = "a fraction of " + std::string(text) + " is not between 0 and 1",
                   .where = std::string(where),
                   .help = help};
    target = Share{.on_device = fraction, .rest = Memory::host};
    return {};
  };
}

/// Declares by the type of the field's member.
struct Declare {
  cli::Group& group;
  const plan::Field& field;
  plan::Strategy& strategy;
  std::string help;

  [[nodiscard]] std::string name() const { return std::string(field.option); }

  cli::Option operator()(const plan::Member<bool>& m) const { return group.add_switch(name(), &m.in(strategy), help); }
  cli::Option operator()(const plan::Member<std::vector<std::string>>& m) const {
    return group.add_list(name(), &m.in(strategy), std::string(field.value_name), help);
  }
  cli::Option operator()(const plan::WordMember& m) const {
    std::vector<cli::Group::Named> words;
    for (const Word& word : m.words()) words.push_back({word.text, word.help});
    return group.add_words(
        name(), words, [of = m.of, s = &strategy]() -> std::size_t { return of(*s); },
        [set = m.set, s = &strategy](std::size_t index) { set(*s, static_cast<std::uint8_t>(index)); }, help);
  }
  cli::Option operator()(const plan::ShareMember& m) const {
    return group.add_custom(name(), std::string(field.value_name), help, share_reader(m.member.in(strategy), m.disk))
        .words({"device", "host", "disk"});
  }
  template <class T>
  cli::Option operator()(const plan::Member<T>& m) const {
    return group.add(name(), &m.in(strategy), std::string(field.value_name), help);
  }
};

}  // namespace

cli::Option add_field(cli::Group& group, const plan::Field& field, plan::Strategy& strategy, std::string_view help) {
  assert(field.given_by == plan::GivenBy::value);
  cli::Option option =
      std::visit(Declare{group, field, strategy, std::string(help.empty() ? field.help : help)}, field.place);
  if (!field.alias.empty()) option.alias(std::string(field.alias));
  if (field.least) option.least(*field.least);
  if (field.most) option.most(*field.most);
  if (field.common) option.common();
  if (!field.default_text.empty()) option.default_text(std::string(field.default_text));
  return option;
}

}  // namespace shard::commands
