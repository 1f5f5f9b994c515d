// Facts about a span, a unit and the plan.
#include "viewer/ui/span_text.h"

#include "viewer/index/ticks.h"
#include "viewer/ui/text.h"

namespace shard::view {

std::vector<std::pair<std::string, std::string>> span_facts(const Document& document, std::uint32_t span) {
  const Span s = document.trace().spans[span];
  const Track& track = document.trace().track_of(s.track);
  std::vector<std::pair<std::string, std::string>> facts;
  facts.emplace_back("duration", duration_text(s.duration_ns));
  if (s.waiting_ns > 0) {
    facts.emplace_back("waiting", duration_text(s.waiting_ns));
    facts.emplace_back("transfer", duration_text(s.busy_ns()));
  }
  facts.emplace_back("begin", exact_time_text(s.begin_ns - document.range().begin_ns));
  facts.emplace_back("what", to_string(document.class_of(span)));
  if (track.rank.valid()) facts.emplace_back("rank", std::to_string(track.rank.value));
  facts.emplace_back("stream", track.name.empty() ? to_string(track.stream) : track.name);
  if (s.op.valid()) {
    facts.emplace_back("op", std::to_string(s.op.value));
    facts.emplace_back("phase", in_words(to_string(s.phase)));
    facts.emplace_back("step", std::to_string(s.step));
    if (s.micro_step >= 0) facts.emplace_back("micro-step", std::to_string(s.micro_step));
  }
  if (s.bytes != 0) {
    facts.emplace_back("bytes", size_text(s.bytes));
    if (s.busy_ns() > 0)
      facts.emplace_back("rate",
                         show_number(static_cast<double>(s.bytes) / static_cast<double>(s.busy_ns())) + " GB/s");
  }
  if (s.unit.valid()) {
    facts.emplace_back("unit", document.chunks().name_of(s.unit));
    for (auto& fact : unit_facts(document, s.unit)) facts.push_back(std::move(fact));
  }
  return facts;
}

std::vector<std::pair<std::string, std::string>> unit_facts(const Document& document, UnitId unit) {
  const UnitInfo* info = document.chunks().info_of(unit);
  if (info == nullptr || info->elements == 0) return {};
  return {{"elements", show_count(info->elements)}, {"gathered", size_text(info->bytes)}};
}

std::vector<std::pair<std::string, std::string>> plan_facts(const Document& document) {
  const Header& header = document.trace().header;
  std::vector<std::pair<std::string, std::string>> facts;
  for (const StrategyField& field : header.strategy) {
    if (field.telling && !field.value.empty()) facts.emplace_back(in_words(field.name), field.value);
  }
  for (const MemoryCapacity& capacity : header.capacities) {
    std::string name = std::string(to_string(capacity.memory)) + " memory";
    if (capacity.rank.valid()) name += " of rank " + std::to_string(capacity.rank.value);
    std::string value = size_text(capacity.bytes);
    if (capacity.sharers > 1) value += " for " + std::to_string(capacity.sharers) + " ranks";
    facts.emplace_back(std::move(name), std::move(value));
  }
  return facts;
}

}  // namespace shard::view
