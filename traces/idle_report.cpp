// An idle device's causes as one sentence and as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/base/numbers.h"
#include "traces/idle.h"

namespace shard {
namespace {

using Json = nlohmann::ordered_json;

/// Less than this share of what was looked at is not worth a word.
constexpr double kWorthAWord = 0.05;

double part_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string whole_percent(double part) {
  const int whole = static_cast<int>(part * 100 + 0.5);
  return (whole == 100 && part < 1 ? "over 99" : std::to_string(whole)) + " %";
}

const char* in_a_sentence(IdleCause cause) {
  switch (cause) {
    case IdleCause::launch_bound: return "the host had not launched the next kernel (launch-bound)";
    case IdleCause::host_sync: return "the host had waited for the GPU before it launched more (synchronisation)";
    case IdleCause::data_loading: return "the host waited for data";
    case IdleCause::allocation: return "the host was asking the driver for memory or giving it back";
    case IdleCause::host_collective: return "the host was in a collective";
    case IdleCause::on_device: return "the next kernel was launched and waited for another stream or its start";
    case IdleCause::nothing_left: return "nothing was launched any more";
    case IdleCause::not_known: return "the recording does not say which call launched the next work";
  }
  return "?";
}

/// What to look at first.
const char* advice(IdleCause cause) {
  switch (cause) {
    case IdleCause::launch_bound: return "CUDA graphs, torch.compile or a larger batch launch less for the same work.";
    case IdleCause::host_sync: return "Look for .item(), .cpu(), print() of tensors and synchronize() in the step.";
    case IdleCause::data_loading: return "More workers of the DataLoader, or pinned memory and prefetching, help.";
    case IdleCause::allocation: return "Warm the allocator up, or look for empty_cache() in the step.";
    case IdleCause::host_collective:
    case IdleCause::on_device:
    case IdleCause::nothing_left:
    case IdleCause::not_known: return "";
  }
  return "";
}

}  // namespace

const char* to_string(IdleCause cause) {
  switch (cause) {
    case IdleCause::launch_bound: return "launch_bound";
    case IdleCause::host_sync: return "host_sync";
    case IdleCause::data_loading: return "data_loading";
    case IdleCause::allocation: return "allocation";
    case IdleCause::host_collective: return "host_collective";
    case IdleCause::on_device: return "on_device";
    case IdleCause::nothing_left: return "nothing_left";
    case IdleCause::not_known: return "not_known";
  }
  return "?";
}

std::string verdict(const IdleTimes& idle) {
  const auto worst = std::ranges::max_element(
      idle.devices, {}, [](const DeviceIdle& device) { return part_of(device.idle_ns, device.window_ns); });
  if (worst == idle.devices.end()) return "";
  const double part = part_of(worst->idle_ns, worst->window_ns);
  const char* const of = worst->of_steps ? " of the steps" : " of the recording";
  std::string text = "The GPU" +
                     (idle.devices.size() > 1 ? " of rank " + std::to_string(worst->place.rank.value) : std::string()) +
                     (idle.devices.size() > 1 ? ", the idlest of " + std::to_string(idle.devices.size()) + "," : "");
  if (part < kWorthAWord) {
    text += " was busy " + whole_percent(1 - part) + of + ".";
  } else {
    std::array<IdleCause, kIdleCauseCount> causes{};
    for (int c = 0; c < kIdleCauseCount; ++c) causes[static_cast<std::size_t>(c)] = static_cast<IdleCause>(c);
    std::ranges::stable_sort(causes, std::ranges::greater{}, [&](IdleCause cause) { return worst->of(cause); });
    text += " was idle " + whole_percent(part) + of + ":";
    const char* before = " ";
    for (const IdleCause cause : causes) {
      const double of_idle = part_of(worst->of(cause), worst->idle_ns);
      if (of_idle < kWorthAWord) break;
      text += before + whole_percent(of_idle) + " of that " + in_a_sentence(cause);
      before = ", ";
    }
    text += ".";
    if (const std::string help = advice(causes.front()); !help.empty()) text += " " + help;
  }
  if (const double exposed = part_of(worst->exposed_ns, worst->window_ns); exposed >= kWorthAWord)
    text += " Another " + whole_percent(exposed) + " nothing but collectives ran.";
  if (!idle.waits.empty()) {
    const CollectiveWait& most = idle.waits.front();
    text += " Rank " + std::to_string(most.rank.value) + " waited " +
            duration(Seconds{static_cast<double>(most.wait_ns) / 1e9}, 3) + " in collectives for rank " +
            std::to_string(most.last.value) + ", which came last.";
  }
  return text;
}

Json to_json(const IdleTimes& idle) {
  Json json{{"verdict", verdict(idle)}, {"idle", Json::array()}, {"collective_waits", Json::array()}};
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
  for (const DeviceIdle& device : idle.devices) {
    Json causes = Json::object();
    for (int c = 0; c < kIdleCauseCount; ++c) {
      const auto cause = static_cast<IdleCause>(c);
      causes[std::string(to_string(cause)) + "_seconds"] = seconds(device.of(cause));
    }
    json["idle"].push_back({{"rank", device.place.rank.value},
                            {"device", device.place.device.valid() ? Json(device.place.device.value) : Json()},
                            {"within", device.of_steps ? "steps" : "recording"},
                            {"window_seconds", seconds(device.window_ns)},
                            {"idle_seconds", seconds(device.idle_ns)},
                            {"idle_share", part_of(device.idle_ns, device.window_ns)},
                            {"exposed_collective_seconds", seconds(device.exposed_ns)},
                            {"causes", std::move(causes)}});
  }
  for (const CollectiveWait& wait : idle.waits)
    json["collective_waits"].push_back(
        {{"rank", wait.rank.value}, {"for_rank", wait.last.value}, {"seconds", seconds(wait.wait_ns)}});
  return json;
}

}  // namespace shard
