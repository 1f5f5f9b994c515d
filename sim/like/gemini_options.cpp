// Names of versions, and which options a version can have.
#include "sim/like/gemini_options.h"

#include <algorithm>
#include <cmath>

#include "sim/like/frameworks/framework.h"

namespace shard::like {
namespace {

/// So that no sum of bytes overflows: 6 bytes per element, times the tensors of a chunk in one of them.
constexpr std::int64_t kMostElems = std::int64_t{1} << 44;

Error contradiction(GeminiRules rules, std::string what, std::string help) {
  return {.code = Errc::contradiction,
          .what = std::move(what),
          .where = "--like " + name_of(rules),
          .help = std::move(help)};
}

Result<void> check_fraction(const char* option, double value) {
  if (value >= 0.0 && value <= 1.0) return {};
  return Error{.code = Errc::usage,
               .what = std::to_string(value) + " is not a fraction",
               .where = "--" + std::string(option),
               .help = "a number from 0 to 1"};
}

std::string text_of(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Result<void> check_whole(const GeminiOptions& o) {
  constexpr GeminiRules kWhole = GeminiRules::whole;
  if (o.shard_param_frac != 0.0 && o.shard_param_frac != 1.0)
    return contradiction(kWhole,
                         "--shard-param-frac " + text_of(o.shard_param_frac) +
                             ": this version spreads all chunks over the ranks (1) or none (0)",
                         "--shard-param-frac 1");
  const bool cuda = o.offload_optim_frac == 0.0 && o.offload_param_frac == 0.0;
  const bool cpu = o.offload_optim_frac == 1.0 && o.offload_param_frac == 1.0;
  if (!cuda && !cpu)
    return contradiction(kWhole,
                         "--offload-optim-frac " + text_of(o.offload_optim_frac) + " and --offload-param-frac " +
                             text_of(o.offload_param_frac) +
                             ": this version keeps everything on the device (both 0, its policy cuda) or in host "
                             "memory (both 1, its policy cpu)",
                         "--offload-optim-frac 1 --offload-param-frac 1");
  return {};
}

Result<void> check_split(const GeminiOptions& o) {
  constexpr GeminiRules kSplit = GeminiRules::split;
  if (!o.chunk)
    return contradiction(kSplit, "--chunk-size none: one chunk per tensor is what version 0.1.9 had",
                         "--like colossalai-gemini@0.1.9, or a chunk size");
  if (o.keep_gathered || o.chunk->count() % o.world_size == 0) return {};
  return contradiction(kSplit,
                       "--chunk-size " + std::to_string(o.chunk->count()) + " is not a multiple of --world-size " +
                           std::to_string(o.world_size) + ", so a chunk cannot be cut into equal shards",
                       "--chunk-size " + std::to_string(round_up(*o.chunk, o.world_size).count()));
}

}  // namespace

std::string name_of(GeminiRules rules) {
  const auto at = std::ranges::find_if(
      frameworks(), [&](const Framework& f) { return f.teller == Teller::gemini && f.gemini == rules; });
  return at->full_name();
}

std::optional<GeminiRules> gemini_rules(std::string_view name) {
  for (const Framework* const framework : named_frameworks(name))
    if (framework->teller == Teller::gemini) return framework->gemini;
  return std::nullopt;
}

Result<void> check_gemini(GeminiRules rules, const ParameterList& parameters, const GeminiOptions& o) {
  if (o.world_size < 1)
    return Error{.code = Errc::usage,
                 .what = std::to_string(o.world_size) + " ranks",
                 .where = "--world-size",
                 .help = "--world-size 1"};
  if (o.chunk && o.chunk->count() < 1)
    return Error{.code = Errc::usage,
                 .what = "a chunk has at least one element",
                 .where = "--chunk-size " + std::to_string(o.chunk->count()),
                 .help = "--chunk-size 32Mi"};
  if (Result<void> ok = check_fraction("shard-param-frac", o.shard_param_frac); !ok) return ok;
  if (Result<void> ok = check_fraction("offload-optim-frac", o.offload_optim_frac); !ok) return ok;
  if (Result<void> ok = check_fraction("offload-param-frac", o.offload_param_frac); !ok) return ok;
  if (o.rank < 0 || o.rank >= o.world_size)
    return Error{.code = Errc::usage,
                 .what = "there is no rank " + std::to_string(o.rank) + " of " + std::to_string(o.world_size),
                 .where = "--rank",
                 .help = "0 to " + std::to_string(o.world_size - 1)};
  if (Result<void> ok = rules == GeminiRules::whole ? check_whole(o) : check_split(o); !ok) return ok;
  const std::int64_t most_chunks = static_cast<std::int64_t>(parameters.size());
  if (total_elems(parameters).count() > kMostElems || (o.chunk && o.chunk->count() > kMostElems / most_chunks))
    return contradiction(rules, "more than 2^44 elements in chunks", "a smaller model or chunk size");
  return {};
}

}  // namespace shard::like
