// Laws of kernels from JSON, and to it.
#include "sim/cluster/read_kernel_laws.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shard::cluster {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostKernels = 16;

ProductLaw read_product(JsonObject json) {
  const ProductLaw law{.peak_share = json.share("peak_share"),
                       .ramp = json.non_negative("ramp_elements"),
                       .tile_traffic = json.non_negative("tile_traffic"),
                       .quantised_share = json.non_negative("quantised_share"),
                       .floor = Seconds{json.non_negative("floor_seconds")},
                       .bandwidth_share = json.share("bandwidth_share")};
  json.refuse_unknown_keys();
  return law;
}

Json product_json(const ProductLaw& law) {
  return {{"peak_share", law.peak_share},       {"ramp_elements", law.ramp},
          {"tile_traffic", law.tile_traffic},   {"quantised_share", law.quantised_share},
          {"floor_seconds", law.floor.count()}, {"bandwidth_share", law.bandwidth_share}};
}

AttentionLaw read_attention(JsonObject json) {
  AttentionLaw law;
  const std::string kernel = json.text("kernel");
  const std::vector<Word> words = words_of<AttentionKernel>();
  const auto found = std::ranges::find_if(words, [&](const Word& each) { return kernel == each.text; });
  if (found == words.end())
    json.fail("kernel", "is none of flash_1, flash_2, newest");
  else
    law.kernel = static_cast<AttentionKernel>(found - words.begin());
  law.forward_share = json.share("forward_share");
  law.forward_ramp = json.non_negative("forward_ramp_tokens");
  law.backward_share = json.share("backward_share");
  law.backward_ramp = json.non_negative("backward_ramp_tokens");
  json.refuse_unknown_keys();
  return law;
}

MovedLaw read_moved(JsonObject json) {
  const MovedLaw law{.floor = Seconds{json.non_negative("floor_seconds")},
                     .share = json.share("bandwidth_share"),
                     .reduction_share = json.share("reduction_bandwidth_share")};
  json.refuse_unknown_keys();
  return law;
}

std::vector<NcclProtocol> read_protocols(JsonObject& json, std::string_view key) {
  std::vector<NcclProtocol> list;
  if (!json.has(key)) return list;
  for (JsonObject& each : json.objects(key, kMostKernels)) {
    list.push_back({.base = Seconds{each.non_negative("base_seconds")},
                    .per_rank = Seconds{each.non_negative("per_rank_seconds")},
                    .bandwidth = BytesPerSecond{each.positive("bus_bandwidth_bytes_per_second")}});
    each.refuse_unknown_keys();
  }
  return list;
}

Json protocols_json(const std::vector<NcclProtocol>& list) {
  Json j = Json::array();
  for (const NcclProtocol& p : list)
    j.push_back({{"base_seconds", p.base.count()},
                 {"per_rank_seconds", p.per_rank.count()},
                 {"bus_bandwidth_bytes_per_second", p.bandwidth.count()}});
  return j;
}

}  // namespace

KernelLaws read_kernel_laws(JsonObject json) {
  KernelLaws laws;
  laws.source = json.text("source", "");
  laws.measured = json.boolean("measured", true);
  laws.clock_share = json.has("clock_share") ? json.share("clock_share") : 1;
  laws.spread = json.has("spread") ? json.non_negative("spread") : 0;
  laws.product = read_product(json.object("product"));
  if (json.has("sustained_product")) laws.sustained_product = read_product(json.object("sustained_product"));
  for (JsonObject& each : json.objects("attention", kMostKernels))
    laws.attention.push_back(read_attention(std::move(each)));
  laws.moved = read_moved(json.object("moved"));
  laws.exchange.gather = read_protocols(json, "gather");
  laws.exchange.all_reduce = read_protocols(json, "all_reduce");
  json.refuse_unknown_keys();
  return laws;
}

Json kernel_laws_json(const KernelLaws& laws) {
  Json j{{"source", laws.source}, {"measured", laws.measured}};
  if (laws.clock_share != 1) j["clock_share"] = laws.clock_share;
  j["spread"] = laws.spread;
  j["product"] = product_json(laws.product);
  if (laws.sustained_product) j["sustained_product"] = product_json(*laws.sustained_product);
  j["attention"] = Json::array();
  for (const AttentionLaw& law : laws.attention)
    j["attention"].push_back({{"kernel", word(law.kernel).text},
                              {"forward_share", law.forward_share},
                              {"forward_ramp_tokens", law.forward_ramp},
                              {"backward_share", law.backward_share},
                              {"backward_ramp_tokens", law.backward_ramp}});
  j["moved"] = {{"floor_seconds", laws.moved.floor.count()},
                {"bandwidth_share", laws.moved.share},
                {"reduction_bandwidth_share", laws.moved.reduction_share}};
  if (!laws.exchange.gather.empty()) j["gather"] = protocols_json(laws.exchange.gather);
  if (!laws.exchange.all_reduce.empty()) j["all_reduce"] = protocols_json(laws.exchange.all_reduce);
  return j;
}

}  // namespace shard::cluster
