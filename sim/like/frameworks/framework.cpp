// Questions to the table of frameworks.
#include "sim/like/frameworks/framework.h"

#include <algorithm>

#include "sim/model/closest_name.h"

namespace shard::like {
namespace {

/// What every framework takes: which model on which machine, and how a step is cut.
constexpr std::string_view kSharedOptions[] = {"model",     "world-size",   "stage",    "micro-batch",     "sequence",
                                               "optimizer", "recompute",    "cluster",  "device-capacity", "nodes",
                                               "like",      "global-batch", "precision"};

/// The version itself, a patch of it, or a release that has the same rules.
bool has_version(const Framework& framework, std::string_view version) {
  if (std::ranges::find(framework.releases, version) != framework.releases.end()) return true;
  if (!version.starts_with(framework.version)) return false;
  std::string_view patch = version.substr(framework.version.size());
  if (patch.empty()) return true;
  if (!framework.releases.empty() || patch.front() != '.') return false;
  patch.remove_prefix(1);
  return !patch.empty() && patch.find_first_not_of("0123456789") == std::string_view::npos;
}

bool answers_for(const Framework& framework, const model::Model& model) {
  return (framework.teller == Teller::pytorch_1_8) == (model.family == model::Family::mlp);
}

}  // namespace

bool Framework::takes(std::string_view option) const {
  return std::ranges::find(kSharedOptions, option) != std::end(kSharedOptions) ||
         std::ranges::find(options, option) != options.end();
}

const Framework* framework_of(eager::Framework sharding) {
  const auto at = std::ranges::find_if(
      frameworks(), [&](const Framework& f) { return f.teller == Teller::eager && f.sharding == sharding; });
  return at == frameworks().end() ? nullptr : &*at;
}

std::vector<const Framework*> named_frameworks(std::string_view text) {
  const std::size_t at = text.find('@');
  std::vector<const Framework*> named;
  for (const Framework& framework : frameworks())
    if (framework.name == text.substr(0, at) &&
        (at == std::string_view::npos || has_version(framework, text.substr(at + 1))))
      named.push_back(&framework);
  // A name alone means its newest version; of several kinds of rules the newest of each.
  std::erase_if(named, [&](const Framework* each) {
    return std::ranges::any_of(named,
                               [&](const Framework* other) { return other < each && other->teller == each->teller; });
  });
  return named;
}

const Framework* framework_for(std::span<const Framework* const> named, const model::Model& model) {
  const auto at = std::ranges::find_if(named, [&](const Framework* each) { return answers_for(*each, model); });
  return at == named.end() ? named.front() : *at;
}

Error unknown_framework(std::string_view name) {
  std::vector<std::string> full_names;
  for (const Framework& framework : frameworks()) full_names.push_back(framework.full_name());
  full_names.emplace_back(kOwnName);
  const std::vector<std::string_view> known(full_names.begin(), full_names.end());
  std::string help = model::did_you_mean(name, known);
  if (!help.empty()) help += " ";
  help += "known: ";
  for (std::size_t i = 0; i < known.size(); ++i) help += (i > 0 ? ", " : "") + std::string(known[i]);
  return {.code = Errc::usage,
          .what = "no rules are known for '" + std::string(name) + "'",
          .where = "--like",
          .help = std::move(help)};
}

std::vector<std::string> who_takes(std::string_view option) {
  std::vector<std::string> names;
  for (const Framework& framework : frameworks())
    if (framework.takes(option) && std::ranges::find(names, framework.name) == names.end())
      names.emplace_back(framework.name);
  return names;
}

std::string frameworks_help() {
  std::string text;
  for (const Framework& framework : frameworks())
    text += framework.full_name() + " (" + std::string(framework.help) + "),\n";
  return text + std::string(kOwnName) + " (our own executor, also where GPUs would mean another framework)";
}

}  // namespace shard::like
