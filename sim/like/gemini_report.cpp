// Gemini's figures for machines and people.
#include "sim/like/gemini_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/engine/report.h"
#include "traces/base/numbers.h"

namespace shard::like {
namespace {

using nlohmann::json;

const Calls& calls(const LedgerMoment& moment, Collective kind) {
  return moment.calls[static_cast<std::size_t>(kind)];
}
Bytes model_data(const LedgerMoment& moment, Memory memory) {
  return moment.model_data[static_cast<std::size_t>(memory)];
}

json iteration(const GeminiIteration& it, GeminiRules rules) {
  const LedgerMoment &forward = it.after_forward, &all = it.after_backward;
  json j{{"ag_fwd", calls(forward, Collective::all_gather).count},
         {"ag_total", calls(all, Collective::all_gather).count},
         {"ag_bytes_full", calls(all, Collective::all_gather).bytes.count()},
         {"rs", calls(all, Collective::reduce_scatter).count},
         {"rs_bytes_full", calls(all, Collective::reduce_scatter).bytes.count()},
         {"ar", calls(all, Collective::all_reduce).count},
         {"ar_bytes", calls(all, Collective::all_reduce).bytes.count()},
         {"h2d", all.to_device.count()},
         {"d2h", all.to_host.count()},
         {"peak_model_data_cuda", all.model_data_peak.count()},
         {"peak_fwd", forward.model_data_peak.count()},
         {"cuda_after_fwd", model_data(forward, Memory::device).count()},
         {"cuda_after_bwd", model_data(all, Memory::device).count()},
         {"cpu_after_bwd", model_data(all, Memory::host).count()}};
  if (rules == GeminiRules::whole) {
    j["broadcast_fwd"] = calls(forward, Collective::broadcast).count;
    j["broadcast_total"] = calls(all, Collective::broadcast).count;
    j["broadcast_bytes_full"] = calls(all, Collective::broadcast).bytes.count();
    j["reduce"] = calls(all, Collective::reduce).count;
    j["reduce_bytes_full"] = calls(all, Collective::reduce).bytes.count();
  }
  return j;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

/// A line of the table: what, then one column per step shown.
class Lines {
 public:
  Lines(std::vector<const GeminiIteration*> shown, ShowBytes show) : shown_(std::move(shown)), show_(show) {}
  void add(const std::string& what, const std::function<std::string(const GeminiIteration&)>& value) {
    text += "  " + what + std::string(what.size() < 36 ? 36 - what.size() : 1, ' ');
    for (const GeminiIteration* it : shown_) text += right(value(*it), 24);
    text += "\n";
  }
  void add_calls(const std::string& what, Collective kind) {
    const bool any = std::any_of(shown_.begin(), shown_.end(),
                                 [&](const GeminiIteration* it) { return calls(it->after_backward, kind).count > 0; });
    if (!any) return;
    add(what, [&](const GeminiIteration& it) {
      const Calls& c = calls(it.after_backward, kind);
      return std::to_string(c.count) + ", " + show_(c.bytes);
    });
  }
  std::string text;

 private:
  std::vector<const GeminiIteration*> shown_;
  ShowBytes show_;
};

}  // namespace

json to_json(const GeminiResult& r, std::size_t holders) {
  json sizes = json::array(), used = json::array(), iters = json::array(), largest = json::array();
  std::int64_t total = 0;
  for (const Chunk& c : r.layout.chunks) {
    sizes.push_back(c.elems.count());
    used.push_back(c.used.count());
    total += c.elems.count() * 2;
  }
  for (const GeminiIteration& it : r.iterations) iters.push_back(iteration(it, r.rules));
  for (std::size_t i = 0; i < std::min(holders, r.holders.size()); ++i)
    largest.push_back({{"name", r.holders[i].name},
                       {"category", to_string(r.holders[i].category)},
                       {"bytes", r.holders[i].bytes.count()}});
  json j{{"like", name_of(r.rules)},
         {"world_size", r.options.world_size},
         {"rank", r.options.rank},
         {"chunk_elements", r.options.chunk ? json(r.options.chunk->count()) : json(nullptr)},
         {"shard_param_frac", r.options.shard_param_frac},
         {"offload_optim_frac", r.options.offload_optim_frac},
         {"offload_param_frac", r.options.offload_param_frac},
         {"fits", r.fits},
         {"verdict", cluster::to_string(r.verdict())},
         {"outside_allocator_bytes", engine::to_json(r.outside)},
         {"device_capacity_bytes", r.device_capacity ? json(r.device_capacity->count()) : json(nullptr)},
         {"peak_device_bytes", r.device_peak.count()},
         {"peak_op", r.peak_op},
         {"optimizer_state_bytes", r.optimizer_state.count()},
         {"largest_holders", std::move(largest)},
         {"num_chunks", r.layout.chunks.size()},
         {"chunk_sizes", std::move(sizes)},
         {"utilized", std::move(used)},
         {"offloaded_optim_chunks", r.offloaded_chunks},
         {"keep_gathered_chunk_mem", r.keep_gathered_bytes},
         {"true_total_chunk_mem", total},
         {"rest_cuda", r.rest_device.count()},
         {"rest_cpu", r.rest_host.count()},
         {"iters", std::move(iters)}};
  if (!r.model.empty()) j["model"] = r.model;
  return j;
}

ShowBytes unit_of(const GeminiResult& /*result*/) {
  return one_unit(Bytes{0});
}

std::string verdict_text(const GeminiResult& r, ShowBytes show) {
  if (!r.device_capacity) return cluster::unlimited_line(r.device_peak, r.room(), show);
  return cluster::verdict_line(r.verdict(), r.device_peak, r.room(), show);
}

std::string details_text(const GeminiResult& r, ShowBytes show, std::size_t holders) {
  std::string text =
      "like " + std::string(name_of(r.rules)) + ", rank " + std::to_string(r.options.rank) + " of " +
      std::to_string(r.options.world_size) + ", " + std::to_string(r.layout.chunks.size()) + " chunks" +
      (r.options.chunk ? " of " + std::to_string(r.options.chunk->count()) + " elements" : ", one per tensor") + ", " +
      std::to_string(r.offloaded_chunks) + " with optimizer state in host memory\n";
  std::vector<const GeminiIteration*> shown{&r.iterations.front()};
  if (r.iterations.size() > 1) shown.push_back(&r.iterations.back());
  Lines lines(shown, show);
  lines.text =
      std::string(38, ' ') + right("first step", 24) + (shown.size() > 1 ? right("steady step", 24) : "") + "\n";
  lines.add_calls("all-gathers", Collective::all_gather);
  lines.add_calls("reduce-scatters", Collective::reduce_scatter);
  lines.add_calls("all-reduces", Collective::all_reduce);
  lines.add_calls("broadcasts", Collective::broadcast);
  lines.add_calls("reduces", Collective::reduce);
  lines.add("host to device", [show](const GeminiIteration& it) { return show(it.after_backward.to_device); });
  lines.add("device to host", [show](const GeminiIteration& it) { return show(it.after_backward.to_host); });
  lines.add("model data on the device, peak",
            [show](const GeminiIteration& it) { return show(it.after_backward.model_data_peak); });
  lines.add("  after forward",
            [show](const GeminiIteration& it) { return show(model_data(it.after_forward, Memory::device)); });
  lines.add("  after backward",
            [show](const GeminiIteration& it) { return show(model_data(it.after_backward, Memory::device)); });
  lines.add("model data in host memory",
            [show](const GeminiIteration& it) { return show(model_data(it.after_backward, Memory::host)); });
  text += lines.text;
  text += "everything on the device, peak: " + show(r.device_peak) + ", reached by \"" + r.peak_op + "\"" +
          (r.with_activations ? "" : "; no activations") + "\n";
  for (std::size_t i = 0; i < std::min(holders, r.holders.size()); ++i)
    text += right(show(r.holders[i].bytes), 16) + "  " + std::string(to_string(r.holders[i].category)) + "  " +
            r.holders[i].name + "\n";
  return text;
}

}  // namespace shard::like
