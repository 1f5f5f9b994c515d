// The answer to an out-of-memory message.
#include "sim/commands/inspect_oom.h"

#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/commands/printing.h"
#include "traces/base/numbers.h"
#include "traces/base/read_file.h"
#include "traces/import/combine.h"
#include "traces/import/import.h"
#include "traces/inspect.h"
#include "traces/out_of_memory.h"

namespace shard::commands {
namespace {

/// A log of a run of days.
constexpr Bytes kMostText{std::int64_t{256} << 20};

/// One thing to do, and why.
struct Remedy {
  std::string what;
  std::string why;
};

std::string gpu_of(const OutOfMemory& message) {
  return message.device ? "GPU " + std::to_string(*message.device) : "the GPU";
}

std::string conclusion_of(const OutOfMemory& m) {
  const std::string asked = show_bytes(m.asked);
  const std::string idle = show_bytes(m.unallocated);
  switch (cause_of(m)) {
    case OutOfMemoryCause::fragmentation:
      return "Fragmentation: " + asked + " was asked for, and " + idle + " lies idle in PyTorch's allocator" +
             (m.unallocated >= m.asked ? "" : ", which with the " + show_bytes(m.free) + " free would do") +
             ", in pieces that are too small or of another pool or stream";
    case OutOfMemoryCause::other_processes:
      return std::string(m.in_use ? "Other processes"
                                  : "Something outside of PyTorch's allocator, other processes most likely,") +
             " have " + show_bytes(m.elsewhere()) + " of " + gpu_of(m) + "'s " + show_bytes(m.capacity) +
             ": without them the " + asked + " asked for would be there";
    case OutOfMemoryCause::limit:
      return "The process may take " + show_bytes(m.allowed.value_or(m.capacity)) + " and no more, while " +
             show_bytes(m.free) + " of " + gpu_of(m) + " is free";
    case OutOfMemoryCause::refused:
      return "The driver refuses " + asked + " although it calls " + show_bytes(m.free) + " of " + gpu_of(m) +
             " free: a limit below PyTorch (WSL, MIG, a container, a shared card), or others that took and gave it "
             "back";
    case OutOfMemoryCause::full: break;
  }
  if (m.asked > m.capacity)
    return "Too large: the " + asked + " asked for at once are more than " + gpu_of(m) + " has in all, " +
           show_bytes(m.capacity);
  const std::string full = "Truly full: of " + gpu_of(m) + "'s " + show_bytes(m.capacity) + " PyTorch has " +
                           show_bytes(m.allocated) + " allocated, and the " + asked + " asked for are ";
  if (m.free + m.unallocated < m.asked)
    return full + "more than the " + show_bytes(m.free) + " free and the " + idle + " idle in its allocator together";
  return full + "in no piece of the " + idle + " idle in its allocator, which is little";
}

std::vector<Remedy> remedies_of(const OutOfMemory& m) {
  std::vector<Remedy> all;
  const OutOfMemoryCause cause = cause_of(m);
  if (cause == OutOfMemoryCause::fragmentation) {
    if (m.form == OutOfMemoryForm::unallocated)
      all.push_back({"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "segments that grow leave no such gaps"});
    else
      all.push_back({"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128",
                     "large blocks are not split; from PyTorch 2.1 on expandable_segments:True, which is better"});
    if (m.private_pools)
      all.push_back({"fewer or smaller CUDA graphs", show_bytes(*m.private_pools) + " is in their private pools"});
    all.push_back(
        {"shardscope inspect snapshot.pickle --at peak", "of torch.cuda.memory._dump_snapshot(): where the gaps are"});
  }
  if (cause == OutOfMemoryCause::other_processes)
    all.push_back({"shardscope inspect --device cuda", "who else uses the GPU: end them, or take another GPU"});
  if (cause == OutOfMemoryCause::limit)
    all.push_back({"torch.cuda.set_per_process_memory_fraction", "what limits the process: a larger fraction"});
  if (cause == OutOfMemoryCause::refused)
    all.push_back({"shardscope inspect --device cuda", "what the driver says of the GPU, and who else uses it"});
  all.push_back({"shardscope simulate --what-if", "with your model and strategy: what each lever below would save"});
  all.push_back({"a smaller micro-batch", "activations shrink with it; the global batch stays, in more micro-steps"});
  all.push_back({"recomputation (gradient checkpointing)", "activations are made again instead of kept"});
  all.push_back({"a higher ZeRO stage, or FSDP", "with several GPUs: states, gradients, parameters are sharded"});
  return all;
}

/// The rows of the text, and the keys of JSON.
struct Figure {
  const char* key;
  const char* label;
  std::optional<Bytes> bytes;
  bool is_part = false;  ///< of the device's memory
};

std::vector<Figure> figures_of(const OutOfMemory& m) {
  std::optional<Bytes> others;
  std::optional<Bytes> unknown;
  (m.in_use ? others : unknown) = m.elsewhere();
  return {{"asked_bytes", "asked for", m.asked},
          {"capacity_bytes", "the device has", m.capacity},
          {"allowed_bytes", "the process may take", m.allowed},
          {"allocated_bytes", "allocated by PyTorch", m.allocated, true},
          {"private_pools_bytes", "  of it in pools of CUDA graphs", m.private_pools, true},
          {"unallocated_bytes", "reserved but unallocated", m.unallocated, true},
          {"outside_allocator_bytes", "this process, not PyTorch (context, NCCL)", m.outside(), true},
          {"other_processes_bytes", "other processes", others, true},
          {"not_told_apart_bytes", "context, NCCL and other processes", unknown, true},
          {"free_bytes", "free", m.free, true}};
}

std::string text_of(const OutOfMemory& m) {
  std::string text = conclusion_of(m) + ".\n\n";
  std::size_t width = 0;
  const std::vector<Figure> figures = figures_of(m);
  for (const Figure& each : figures)
    if (each.bytes) width = std::max(width, std::string_view(each.label).size());
  for (const Figure& each : figures) {
    if (!each.bytes) continue;
    const std::string size = show_bytes(*each.bytes);
    text.append("  ").append(each.label).append(width - std::string_view(each.label).size() + 2, ' ');
    text.append(size.size() < 12 ? 12 - size.size() : 0, ' ').append(size);
    if (each.is_part && m.capacity > Bytes{0})
      text += "  " + show_fixed(100.0 * double(each.bytes->count()) / double(m.capacity.count()), 1) + " %";
    text += "\n";
  }
  for (const OutOfMemory::Process& each : m.others)
    text += "  process " + std::to_string(each.id) + " has " + show_bytes(each.in_use) + "\n";
  text += "\nWhat helps:\n";
  for (const Remedy& each : remedies_of(m)) text += "  " + each.what + ": " + each.why + "\n";
  if (m.message_count > 1)
    text += "\nOf " + std::to_string(m.message_count) + " such messages in the text this is the first.\n";
  return text;
}

nlohmann::ordered_json json_of(const OutOfMemory& m, const std::string& path) {
  nlohmann::ordered_json j = cli::json_document("inspect");
  j["file"] = path;
  j["cause"] = to_string(cause_of(m));
  j["conclusion"] = conclusion_of(m);
  j["message_of"] = to_string(m.form);
  j["message_count"] = m.message_count;
  j["device"] = m.device ? nlohmann::ordered_json(*m.device) : nlohmann::ordered_json();
  for (const Figure& each : figures_of(m))
    j[each.key] = each.bytes ? nlohmann::ordered_json(each.bytes->count()) : nlohmann::ordered_json();
  j["processes"] = nlohmann::ordered_json::array();
  for (const OutOfMemory::Process& each : m.others)
    j["processes"].push_back({{"process", each.id}, {"bytes", each.in_use.count()}});
  j["remedies"] = nlohmann::ordered_json::array();
  for (const Remedy& each : remedies_of(m)) j["remedies"].push_back({{"what", each.what}, {"why", each.why}});
  return j;
}

}  // namespace

int inspect_oom(const std::string& path, const std::vector<std::string>& snapshots, const HoldersOptions& holders,
                bool incomplete, cli::Format format) {
  const bool is_stdin = path == "-";
  const Result<std::string> text =
      read_file(is_stdin ? "/dev/stdin" : path, "log", kMostText, "the part of it that has the message");
  if (!text) return failed(text.error());
  const Result<OutOfMemory> message = read_out_of_memory(*text, is_stdin ? "stdin" : path);
  if (!message) return failed(message.error());
  const bool is_json = format == cli::Format::json;
  nlohmann::ordered_json j = json_of(*message, path);
  std::string answer = text_of(*message);
  if (!snapshots.empty()) {
    const Result<LoadedTrace> trace = load_all(snapshots, incomplete);
    if (!trace) return failed(trace.error());
    const TraceSummary summary = summarize(*trace, std::nullopt);
    HoldersOptions all = holders;
    all.asked = true;
    const auto held = all.of(trace->trace, trace->snapshot ? &*trace->snapshot : nullptr, summary.begin_ns);
    if (!held) return failed(held.error());
    const auto top = static_cast<std::size_t>(holders.top);
    j["peak"] = to_json(trace->trace, **held, top, summary.begin_ns);
    answer += "\n" + to_text(trace->trace, **held, top, summary.begin_ns);
  }
  if (is_json)
    std::cout << cli::json_text(j);
  else
    cli::print(std::cout, answer);
  return 0;
}

}  // namespace shard::commands
