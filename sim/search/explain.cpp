// Words for a chunk search's answer.
#include "sim/search/explain.h"

#include "traces/base/numbers.h"

namespace shard {
namespace {

const RuleAnswer* answer_of(const ChunkSearchResult& result, ChunkRule rule) {
  for (const Result<RuleAnswer>& answer : result.rules) {
    if (answer && answer->rule == rule) return &*answer;
  }
  return nullptr;
}

std::string chunks(std::int64_t count) {
  return with_commas(count) + (count == 1 ? " chunk" : " chunks");
}

std::string wasted(const ChunkSearchResult& result, const RuleAnswer& answer) {
  return with_commas(answer.waste.count()) + " elements (" + percent(answer.waste, result.total) + ")";
}

std::string against(const ChunkSearchResult& result, ChunkRule rule) {
  const RuleAnswer* other = answer_of(result, rule);
  if (other == nullptr || other->keep_gathered) return "";
  return std::string(" ") + to_string(rule) + " would take " + with_commas(other->chunk.count()) + ": " +
         chunks(other->chunk_count) + ", " + wasted(result, *other) + " wasted.";
}

/// The peers score neither the layout nor the size that is built in the end: say so where it makes a difference.
std::string score_gap(const RuleAnswer& answer) {
  if (!answer.reported_waste || *answer.reported_waste == answer.waste) return "";
  const std::string score = " Its own score says " + with_commas(answer.reported_waste->count());
  if (answer.filtered_parameters == 0) return score + ": it aligns the size to the world size only afterwards.";
  return score + ": it leaves " + with_commas(answer.filtered_parameters) + " extra-large " +
         (answer.filtered_parameters == 1 ? "parameter" : "parameters") + " out, which the layout cannot.";
}

std::string explain_small(const ChunkSearchResult& result) {
  return "The model has " + with_commas(result.total.count()) +
         " elements, fewer than the smallest chunk allowed: it is one chunk, too small to be worth sharding.";
}

}  // namespace

std::string explain(const ChunkSearchResult& result) {
  const RuleAnswer& answer = result.answer;
  if (answer.keep_gathered) return explain_small(result);
  switch (answer.rule) {
    case ChunkRule::exact:
      return "Of all " + with_commas(answer.candidates) + " multiples of the world size allowed, " +
             with_commas(answer.chunk.count()) + " wastes least in the layout really built: " + wasted(result, answer) +
             " in " + chunks(answer.chunk_count) +
             "; ties go to the smaller gather working set, then to the smaller size." +
             against(result, ChunkRule::gemini);
    case ChunkRule::gemini:
      return "Of " + with_commas(answer.candidates) + " candidates this one has the least padding by Gemini's score; " +
             "the layout built wastes " + wasted(result, answer) + "." + score_gap(answer) +
             against(result, ChunkRule::exact);
    case ChunkRule::gemini_v019:
      return "Of " + with_commas(answer.candidates) +
             " grid points this one has the best utilisation by the v0.1.9 score; the layout built wastes " +
             wasted(result, answer) + "." + score_gap(answer) + against(result, ChunkRule::exact);
    case ChunkRule::variable:
      return "With chunks of at most " + with_commas(answer.max_chunk.count()) +
             " elements, or a single larger parameter, no partition in order into fewer than " +
             chunks(answer.chunk_count) + " wastes at most 0.1 %; with that many, " +
             with_commas(answer.module_boundaries) + " of " + with_commas(answer.chunk_count - 1) +
             " cuts lie between modules, which is the most, and " + with_commas(answer.chunk.count()) +
             " is then the smallest largest chunk. It wastes " + wasted(result, answer) + "." +
             against(result, ChunkRule::exact);
  }
  return "";
}

std::string in_mib(Elems elems, Bytes bytes_per_element) {
  return show_mib(Bytes{elems.count() * bytes_per_element.count()});
}

std::string percent(Elems part, Elems whole) {
  const double share = 100 * static_cast<double>(part.count()) / static_cast<double>(whole.count());
  if (share > 0 && share < 0.005) return "<0.01 %";
  return show_fixed(share, 2) + " %";
}

}  // namespace shard
