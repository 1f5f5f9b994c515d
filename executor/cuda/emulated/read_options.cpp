// Words of an emulated device.
#include "executor/cuda/emulated/read_options.h"

#include <algorithm>
#include <charconv>

#include "executor/cuda/emulated/nccl.h"

namespace shard::cuda {
namespace {

Error not_understood(std::string_view word) {
  std::string calls;
  for (const auto& some : {emulated_calls(), emulated_nccl_calls()})
    for (const std::string_view call : some) calls += (calls.empty() ? "" : ", ") + std::string(call);
  return {
      .code = Errc::usage,
      .what = "'" + std::string(word) + "' says nothing of an emulated device",
      .where = kEmulatedVariable,
      .help = "seed=N, as_enqueued, card=MAJOR.MINOR, devices=N, error=CALL:K or hang=CALL:K, with commas; calls are " +
              calls};
}

bool read_number(std::string_view text, auto& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// CALL:K.
bool read_fault(std::string_view text, PlantedFault& fault) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  fault.call = text.substr(0, colon);
  const auto known =
      std::ranges::count(emulated_calls(), fault.call) + std::ranges::count(emulated_nccl_calls(), fault.call);
  return known == 1 && read_number(text.substr(colon + 1), fault.occurrence) && fault.occurrence > 0;
}

/// A compute capability.
bool read_card(std::string_view text, std::int32_t& capability) {
  const std::size_t point = text.find('.');
  std::int32_t minor = 0;
  if (point == std::string_view::npos || !read_number(text.substr(0, point), capability)) return false;
  if (!read_number(text.substr(point + 1), minor) || capability <= 0 || minor < 0 || minor > 9) return false;
  capability = 10 * capability + minor;
  return true;
}

bool read_word(std::string_view word, EmulatedOptions& options) {
  if (word == "as_enqueued") return options.as_enqueued = true;
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (name == "seed") return read_number(value, options.seed);
  if (name == "card") return read_card(value, options.compute_capability);
  if (name == "devices") return read_number(value, options.devices) && options.devices > 0;
  if (name != "error" && name != "hang") return false;
  PlantedFault fault{.call = {}, .occurrence = 1, .kind = PlantedFault::Kind::error};
  if (name == "hang") fault.kind = PlantedFault::Kind::hang;
  if (!read_fault(value, fault)) return false;
  options.fault = fault;
  return true;
}

}  // namespace

Result<EmulatedOptions> read_emulated_options(std::string_view words, EmulatedOptions options) {
  while (!words.empty()) {
    const std::size_t comma = std::min(words.find(','), words.size());
    const std::string_view word = words.substr(0, comma);
    if (!read_word(word, options)) return not_understood(word);
    words.remove_prefix(std::min(comma + 1, words.size()));
  }
  return options;
}

}  // namespace shard::cuda
