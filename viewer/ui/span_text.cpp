// Facts about a span.
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
  if (s.unit.valid()) facts.emplace_back("unit", document.chunks().name_of(s.unit));
  return facts;
}

}  // namespace shard::view
