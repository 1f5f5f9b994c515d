// Laws of time from JSON, every figure checked.
#include "sim/cluster/read_measured.h"

#include <array>
#include <cmath>
#include <optional>

#include "sim/ir/op_class.h"

namespace shard::cluster {
namespace {

/// More than all kinds in all types; a file with more is no description.
constexpr std::size_t kMostLaws = 4096;
constexpr std::size_t kMostOccupancies = 64;
constexpr std::size_t kMostFigures = 1024;
constexpr std::size_t kMostCorrections = 64;
constexpr std::int64_t kMostRanks = 1 << 20;

std::optional<Dtype> stored_dtype(std::string_view name) {
  for (const Dtype each : {Dtype::f32, Dtype::f16, Dtype::bf16})
    if (name == to_string(each)) return each;
  return std::nullopt;
}

Correction read_correction(JsonObject json) {
  const Correction c{json.non_negative("moved_bytes"), json.positive("factor")};
  json.refuse_unknown_keys();
  return c;
}

OpLaw read_law(JsonObject json) {
  OpLaw law;
  law.kind = json.text("kind");
  if (!plan::op_class(law.kind)) json.fail("kind", "is no kind of op", "such as \"linear forward\" or \"all_gather\"");
  const std::string dtype = json.text("dtype");
  const std::optional<Dtype> known = stored_dtype(dtype);
  if (!known) json.fail("dtype", "must be \"f32\", \"bf16\" or \"f16\"");
  law.dtype = known.value_or(Dtype::f32);
  law.call_seconds = json.non_negative("call_seconds");
  law.flop_seconds = json.non_negative("flop_seconds");
  law.weight_byte_seconds = json.non_negative("weight_byte_seconds");
  law.byte_seconds = json.non_negative("byte_seconds");
  law.samples = json.count("samples", std::int64_t{1} << 40);
  law.median_error = json.non_negative("median_error");
  for (JsonObject& each : json.objects("corrections", kMostCorrections)) {
    law.corrections.push_back(read_correction(each));
    const std::size_t n = law.corrections.size();
    if (n > 1 && !(law.corrections[n - 2].moved_bytes < law.corrections[n - 1].moved_bytes))
      json.fail("corrections", "must be sorted by moved_bytes, each once");
  }
  json.refuse_unknown_keys();
  return law;
}

Figure read_figure(JsonObject json) {
  Figure f;
  f.name = json.text("name");
  f.value = json.non_negative("value");
  f.unit = json.text("unit");
  f.method = json.text("method");
  json.refuse_unknown_keys();
  return f;
}

Occupancy read_occupancy(JsonObject json) {
  Occupancy o;
  o.ranks = static_cast<std::int32_t>(json.count("ranks", kMostRanks));
  o.threads = static_cast<std::int32_t>(json.count("threads", kMostRanks));
  o.between_seconds = json.non_negative("between_seconds");
  o.meeting_seconds = json.non_negative("meeting_seconds");
  o.waiting_share = json.non_negative("waiting_share");
  for (JsonObject& each : json.objects("laws", kMostLaws)) o.laws.push_back(read_law(each));
  json.refuse_unknown_keys();
  return o;
}

}  // namespace

Measured read_measured(JsonObject json) {
  Measured m;
  m.method = json.text("method", "");
  if (json.has("step_error")) m.step_error = json.non_negative("step_error");
  if (json.has("figures"))
    for (JsonObject& each : json.objects("figures", kMostFigures)) m.figures.push_back(read_figure(each));
  for (JsonObject& each : json.objects("occupancies", kMostOccupancies)) m.occupancies.push_back(read_occupancy(each));
  if (m.occupancies.empty()) json.fail("occupancies", "must not be empty");
  json.refuse_unknown_keys();
  return m;
}

}  // namespace shard::cluster
