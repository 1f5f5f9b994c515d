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

/// "2.11" or "2.11.1" of "2.11".
bool is_patch_of(std::string_view version, std::string_view of) {
  if (!version.starts_with(of)) return false;
  std::string_view patch = version.substr(of.size());
  if (patch.empty()) return true;
  if (patch.front() != '.') return false;
  patch.remove_prefix(1);
  return !patch.empty() && patch.find_first_not_of("0123456789") == std::string_view::npos;
}

const eager::Version* older_version(const Framework& framework, std::string_view version) {
  const auto at = std::ranges::find_if(framework.older, [&](eager::Version each) {
    const std::string known = eager::to_text(framework.library, each);
    const bool names_its_minor = framework.library == eager::Library::deepspeed && is_patch_of(known, version);
    return is_patch_of(version, known) || names_its_minor;
  });
  return at == framework.older.end() ? nullptr : &*at;
}

/// The version itself, a patch of it, or a release whose rules are known.
bool has_version(const Framework& framework, std::string_view version) {
  if (std::ranges::find(framework.releases, version) != framework.releases.end()) return true;
  if (older_version(framework, version) != nullptr) return true;
  return framework.releases.empty() ? is_patch_of(version, framework.version) : version == framework.version;
}

bool answers_for(const Framework& framework, const model::Model& model) {
  return (framework.teller == Teller::pytorch_1_8) == (model.family == model::Family::mlp);
}

}  // namespace

bool Framework::takes(std::string_view option) const {
  return std::ranges::find(kSharedOptions, option) != std::end(kSharedOptions) ||
         std::ranges::find(options, option) != options.end();
}

eager::Version version_asked(const Framework& framework, std::string_view text) {
  const std::size_t at = text.find('@');
  const eager::Version* const older =
      at == std::string_view::npos ? nullptr : older_version(framework, text.substr(at + 1));
  if (older != nullptr) return *older;
  if (framework.library != eager::Library::deepspeed) return eager::kNewest;
  const std::string_view patch = at == std::string_view::npos ? "" : text.substr(at + 1);
  const std::size_t minor = patch.find('.');  // behind "0"
  const bool has_patch = minor != std::string_view::npos && patch.find('.', minor + 1) != std::string_view::npos;
  return has_patch ? eager::version_of(patch.substr(minor + 1)).value_or(eager::kUsualDeepSpeed)
                   : eager::kUsualDeepSpeed;
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

namespace {

/// " (and 2.8 to 2.10)".
std::string older_ones(const Framework& framework) {
  if (framework.older.empty()) return "";
  const auto text = [&](eager::Version each) { return eager::to_text(framework.library, each); };
  const std::string newest = text(framework.older.front());
  return framework.older.size() == 1 ? " (and " + newest + ")"
                                     : " (and " + text(framework.older.back()) + " to " + newest + ")";
}

}  // namespace

Error unknown_framework(std::string_view name) {
  std::vector<std::string> full_names;
  std::vector<std::string_view> names;
  for (const Framework& framework : frameworks()) {
    full_names.push_back(framework.full_name());
    names.push_back(framework.name);
  }
  full_names.emplace_back(kOwnName);
  const std::vector<std::string_view> known(full_names.begin(), full_names.end());
  std::string help = model::did_you_mean(name, known);
  if (help.empty()) help = model::did_you_mean(name, names);
  const bool is_stage = model::begins_with(name, "zero") && name.back() >= '0' && name.back() <= '3';
  if (is_stage) help = std::string("ZeRO is 'deepspeed' with '--stage ") + name.back() + "';";
  if (!help.empty()) help += " ";
  help += "known: ";
  for (const Framework& framework : frameworks()) help += framework.full_name() + older_ones(framework) + ", ";
  help += kOwnName;
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
    text += framework.full_name() + older_ones(framework) + " (" + std::string(framework.help) + "),\n";
  return text + std::string(kOwnName) + " (our own executor, also where GPUs would mean another framework)";
}

}  // namespace shard::like
