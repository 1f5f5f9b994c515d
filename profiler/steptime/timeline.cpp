// Categories and arguments are those of libkineto (output_json.cpp).
#include "profiler/steptime/timeline.h"

#include <map>
#include <nlohmann/json.hpp>

#include "traces/base/output_file.h"

namespace shard::steptime {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFirstStream = 7;  ///< as the profiler numbers the stream that kernels run on by default
constexpr double kShownCall = 3e-6;       ///< that a launch is shown to take on the host
constexpr int kHostProcess = 1'000'000;   ///< GPUs are processes by their numbers

const char* category_of(Work kind) {
  return kind == Work::copy ? "gpu_memcpy" : kind == Work::fill ? "gpu_memset" : "kernel";
}
const char* call_of(Work kind) {
  return kind == Work::copy ? "cudaMemcpyAsync" : kind == Work::fill ? "cudaMemsetAsync" : "cudaLaunchKernel";
}

/// Small numbers for handles, in the order in which they come.
class Numbers {
 public:
  explicit Numbers(std::int64_t first) : next_(first) {}
  std::int64_t of(std::int64_t handle) {
    const auto [entry, is_new] = numbers_.try_emplace(handle, next_);
    if (is_new) ++next_;
    return entry->second;
  }
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& all() const { return numbers_; }

 private:
  std::int64_t next_;
  std::map<std::int64_t, std::int64_t> numbers_;
};

class Events {
 public:
  Events(const Forecast& forecast, OutputFile& out) : forecast_(forecast), out_(out) {}

  void write() {
    streams_.of(0);
    operators();
    std::int64_t correlation = 0;
    for (const Shown& each : forecast_.shown) kernel(each, ++correlation);
    name("process_name", 0, 0, "GPU 0");
    name("process_name", kHostProcess, 0, "host, as predicted");
    for (const auto& [handle, number] : streams_.all())
      name("thread_name", 0, number, "stream " + std::to_string(number));
    event({{"ph", "X"},
           {"cat", "user_annotation"},
           {"name", "ProfilerStep#" + std::to_string(forecast_.step)},
           {"pid", kHostProcess},
           {"tid", 1},
           {"ts", 0.0},
           {"dur", forecast_.seconds.count() * 1e6}});
  }

 private:
  void event(const Json& json) {
    out_.write(first_ ? "\n" : ",\n");
    first_ = false;
    out_.write(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  void name(const char* what, std::int64_t process, std::int64_t thread, const std::string& text) {
    event({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", text}}}});
  }

  /// One behind the other: calls in a row of one operator are one.
  void operators() {
    const std::vector<Shown>& all = forecast_.shown;
    for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
      for (end = i + 1; end < all.size() && all[end].op == all[i].op && all[end].thread == all[i].thread;) ++end;
      if (all[i].op.empty()) continue;
      event({{"ph", "X"},
             {"cat", "cpu_op"},
             {"name", all[i].op},
             {"pid", kHostProcess},
             {"tid", threads_.of(all[i].thread)},
             {"ts", all[i].issued.count() * 1e6},
             {"dur", (all[end - 1].issued - all[i].issued).count() * 1e6 + kShownCall * 1e6}});
    }
  }

  void kernel(const Shown& each, std::int64_t correlation) {
    Json arguments{{"device", 0}, {"stream", streams_.of(each.stream)}, {"correlation", correlation}};
    if (each.kind == Work::kernel) arguments["grid"] = each.grid, arguments["block"] = each.block;
    if (each.bytes > 0) arguments["bytes"] = each.bytes;
    arguments["law"] = each.law;
    event({{"ph", "X"},
           {"cat", category_of(each.kind)},
           {"name", each.name},
           {"pid", 0},
           {"tid", streams_.of(each.stream)},
           {"ts", each.begin.count() * 1e6},
           {"dur", (each.end - each.begin).count() * 1e6},
           {"args", std::move(arguments)}});
    event({{"ph", "X"},
           {"cat", "cuda_runtime"},
           {"name", call_of(each.kind)},
           {"pid", kHostProcess},
           {"tid", threads_.of(each.thread)},
           {"ts", each.issued.count() * 1e6},
           {"dur", kShownCall * 1e6},
           {"args", {{"correlation", correlation}}}});
  }

  const Forecast& forecast_;
  OutputFile& out_;
  Numbers streams_{kFirstStream}, threads_{1};
  bool first_ = true;
};

}  // namespace

Result<void> write_kineto(const Forecast& forecast, const TimelineOf& of, const std::filesystem::path& path) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return out.error();
  const Json device{{"id", 0}, {"name", of.card}};
  const Json head{{"schemaVersion", 1},
                  {"deviceProperties", Json::array({device})},
                  {"distributedInfo", {{"rank", of.rank}, {"world_size", of.world_size}}},
                  {"displayTimeUnit", "ms"},
                  {"predicted_by", "shardscope"}};
  std::string text = head.dump();
  text.back() = ',';
  out->write(text + "\"traceEvents\":[");
  Events(forecast, *out).write();
  out->write("\n]}\n");
  return out->finish();
}

}  // namespace shard::steptime
