// One recording; laws by the time that they have, then kernels that have none.
#include "sim/commands/inspect_laws.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/cluster/read_cluster.h"
#include "sim/commands/printing.h"
#include "sim/price/recording.h"
#include "traces/base/numbers.h"
#include "traces/base/text_table.h"
#include "traces/import/kineto_program.h"

namespace shard::commands {
namespace {

std::string in_milliseconds(Seconds time) {
  return show_number(time.count() * 1e3, 4) + " ms";
}
std::string difference(Seconds by_law, Seconds measured) {
  if (measured.count() <= 0) return "-";
  const double percent = 100 * (by_law.count() / measured.count() - 1);
  return (percent >= 0 ? "+" : "") + show_fixed(percent, 1) + " %";
}

nlohmann::ordered_json json_of(const price::LawsBeside& beside, std::size_t top) {
  nlohmann::ordered_json j{{"measured_seconds", beside.measured.count()},
                           {"by_law_seconds", beside.by_law.count()},
                           {"error", beside.error()},
                           {"coverage", beside.coverage()},
                           {"exchanges_seconds", beside.exchanges.count()},
                           {"host_copies_seconds", beside.host_copies.count()},
                           {"laws", nlohmann::ordered_json::array()},
                           {"differing", nlohmann::ordered_json::array()},
                           {"not_known", nlohmann::ordered_json::array()}};
  for (const price::Beside& each : beside.laws)
    j["laws"].push_back({{"law", each.name},
                         {"kernels", each.kernels},
                         {"measured_seconds", each.measured.count()},
                         {"by_law_seconds", each.by_law.count()}});
  for (std::size_t i = 0; i < std::min(top, beside.differing.size()); ++i)
    j["differing"].push_back({{"kernel", beside.differing[i].name},
                              {"kernels", beside.differing[i].kernels},
                              {"measured_seconds", beside.differing[i].measured.count()},
                              {"by_law_seconds", beside.differing[i].by_law.count()}});
  for (std::size_t i = 0; i < std::min(top, beside.not_known.size()); ++i)
    j["not_known"].push_back({{"kernel", beside.not_known[i].name},
                              {"kernels", beside.not_known[i].kernels},
                              {"measured_seconds", beside.not_known[i].measured.count()}});
  return j;
}

std::string text_of(const price::LawsBeside& beside, const std::string& card, std::size_t top) {
  std::string text = "kernels took " + in_milliseconds(beside.measured + beside.without_law) + "; laws of " + card +
                     " hold for " + show_fixed(100 * beside.coverage(), 1) + " % of that, and say " +
                     in_milliseconds(beside.by_law) + " for what took " + in_milliseconds(beside.measured) + " (" +
                     difference(beside.by_law, beside.measured) + ")\n";
  if (beside.host_copies.count() > 0)
    text += "left out: " + in_milliseconds(beside.host_copies) + " of copies from and to the host\n";
  if (beside.exchanges.count() > 0)
    text += "left out: " + in_milliseconds(beside.exchanges) + " of collectives, which wait for other ranks\n";
  TextTable laws({"law", "kernels", "measured", "by law", "difference"}, 1);
  for (const price::Beside& each : beside.laws)
    laws.add({each.name, std::to_string(each.kernels), in_milliseconds(each.measured), in_milliseconds(each.by_law),
              difference(each.by_law, each.measured)});
  text += "\n" + laws.str();
  if (top == 0) return text;
  constexpr std::size_t kName = 80;
  TextTable kernels({"kernels", "measured", "by law", "differing most"}, std::vector<bool>{false, false, false, true});
  for (std::size_t i = 0; i < std::min(top, beside.differing.size()); ++i)
    kernels.add({std::to_string(beside.differing[i].kernels), in_milliseconds(beside.differing[i].measured),
                 in_milliseconds(beside.differing[i].by_law), beside.differing[i].name.substr(0, kName)});
  if (!kernels.empty()) text += "\n" + kernels.str();
  if (beside.not_known.empty()) return text;
  TextTable others({"kernels", "measured", "without a law"}, std::vector<bool>{false, false, true});
  for (std::size_t i = 0; i < std::min(top, beside.not_known.size()); ++i)
    others.add({std::to_string(beside.not_known[i].kernels), in_milliseconds(beside.not_known[i].measured),
                beside.not_known[i].name.substr(0, kName)});
  return text + "\n" + others.str();
}

}  // namespace

int inspect_laws(const std::vector<std::string>& paths, const std::string& name, std::size_t top, cli::Format format) {
  if (paths.size() > 1)
    return failed({Errc::usage, "--laws is of one recording", "'" + paths[1] + "'", "one file of PyTorch's profiler"});
  const Result<cluster::Cluster> card = cluster::read_cluster(name);
  if (!card) return failed(card.error());
  if (!card->kernel_laws)
    return failed({Errc::contradiction, "nothing is known of how long kernels take on '" + card->name + "'", "--laws",
                   "a cluster whose description has kernel_laws: those of GPUs that Shardscope brings have"});
  const Result<import::KinetoProgram> recording = import::read_kineto_program(paths.front());
  if (!recording) return failed(recording.error());
  const price::LawsBeside beside = price::laws_beside(*recording, *card);
  if (beside.measured.count() + beside.without_law.count() <= 0)
    return failed({Errc::contradiction, "there is no kernel in it", paths.front(),
                   "a recording of PyTorch's profiler with ProfilerActivity.CUDA and record_shapes=True"});
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j["file"] = paths.front();
    j["laws_of"] = card->name;
    j["devices"] = recording->devices;
    j["kernels"] = json_of(beside, top);
    std::cout << cli::json_text(j);
  } else {
    cli::print(std::cout, text_of(beside, card->name, top));
  }
  return 0;
}

}  // namespace shard::commands
