// What the bytes of a buffer mean.
#include "sim/check/content.h"

#include <algorithm>

namespace shard::plan::verification {

const char* to_string(Meaning meaning) {
  switch (meaning) {
    case Meaning::nothing: return "nothing";
    case Meaning::scratch: return "left-over bytes";
    case Meaning::value: return "value";
    case Meaning::value_gradient: return "gradient of a value";
    case Meaning::master: return "master parameters";
    case Meaning::parameter: return "parameters";
    case Meaning::padding: return "padding";
    case Meaning::gradient: return "gradients";
    case Meaning::zero: return "newborn state";
    case Meaning::moment: return "moment";
    case Meaning::counts: return "step counts";
    case Meaning::scalars: return "scalars";
    case Meaning::loss: return "loss";
    case Meaning::all_losses: return "losses of all ranks";
    case Meaning::mean_loss: return "mean loss";
    case Meaning::knobs: return "control knobs";
    case Meaning::facts: return "facts about gradients";
    case Meaning::all_facts: return "facts of all ranks";
    case Meaning::scaler: return "loss scaler";
    case Meaning::loss_scale: return "loss scale";
    case Meaning::control: return "the decision on this step";
    case Meaning::foreign: return "bytes of another rank";
  }
  return "?";
}

std::string describe(const Plan& plan, const Content& content) {
  std::string text = to_string(content.meaning);
  const auto of_flat = [&] {
    const auto f = static_cast<std::size_t>(content.what);
    const auto u = static_cast<std::size_t>(plan.flats[f].unit.value);
    return " of flat " + std::to_string(f) + " ('" + plan.units[u].name + "') from element " +
           std::to_string(content.start);
  };
  switch (content.meaning) {
    case Meaning::value:
      text += " '" + plan.graph->values[static_cast<std::size_t>(content.what)].name + '\'';
      if (content.start != 0) text += " from element " + std::to_string(content.start);
      break;
    case Meaning::master:
    case Meaning::parameter:
      text += of_flat() + (content.tag == 0 ? " before the optimizer step" : " after the optimizer step");
      break;
    case Meaning::padding:
    case Meaning::gradient:
    case Meaning::moment: text += of_flat(); break;
    case Meaning::nothing:
    case Meaning::scratch:
    case Meaning::value_gradient:
    case Meaning::zero:
    case Meaning::counts:
    case Meaning::scalars:
    case Meaning::loss:
    case Meaning::all_losses:
    case Meaning::mean_loss:
    case Meaning::knobs:
    case Meaning::facts:
    case Meaning::all_facts:
    case Meaning::loss_scale:
    case Meaning::control:
    case Meaning::foreign: break;
    case Meaning::scaler: text += content.tag == 0 ? " as the step found it" : " as the next step finds it"; break;
  }
  if (content.step >= 0) text += " of micro-step " + std::to_string(content.step);
  return text;
}

std::vector<Piece> Contents::inside(std::int64_t begin, std::int64_t end) const {
  std::vector<Piece> result;
  auto it = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                             [](std::int64_t at, const Piece& p) { return at < p.end; });
  std::int64_t at = begin;
  for (; it != pieces_.end() && it->begin < end; ++it) {
    if (it->begin > at) result.push_back({at, it->begin, {}});
    const std::int64_t from = std::max(at, it->begin);
    const std::int64_t to = std::min(end, it->end);
    result.push_back({from, to, it->content.after(from - it->begin)});
    at = to;
  }
  if (at < end) result.push_back({at, end, {}});
  return result;
}

bool Contents::is(std::int64_t begin, std::int64_t end, const Content& content) const {
  const auto it = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                   [](std::int64_t at, const Piece& p) { return at < p.end; });
  return it != pieces_.end() && it->begin <= begin && it->end >= end && it->content.after(begin - it->begin) == content;
}

void Contents::write(std::int64_t begin, std::int64_t end, const Content& content) {
  auto first = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                [](std::int64_t at, const Piece& p) { return at < p.end; });
  auto last = first;
  while (last != pieces_.end() && last->begin < end) ++last;
  Piece added{begin, end, content};
  std::vector<Piece> kept;  // what is left of the cut pieces, and the new one
  if (first != last && first->begin < begin) kept.push_back({first->begin, begin, first->content});
  kept.push_back(added);
  if (first != last && std::prev(last)->end > end) {
    const Piece& cut = *std::prev(last);
    kept.push_back({end, cut.end, cut.content.after(end - cut.begin)});
  }
  // Pieces that continue each other become one.
  if (first != pieces_.begin()) kept.insert(kept.begin(), *--first);
  if (last != pieces_.end()) kept.push_back(*last++);
  std::vector<Piece> merged;
  for (const Piece& piece : kept) {
    if (!merged.empty() && merged.back().end == piece.begin &&
        merged.back().content.after(piece.begin - merged.back().begin) == piece.content)
      merged.back().end = piece.end;
    else
      merged.push_back(piece);
  }
  const auto old = static_cast<std::size_t>(last - first);
  if (old == merged.size()) {
    std::copy(merged.begin(), merged.end(), first);
    return;
  }
  first = pieces_.erase(first, last);
  pieces_.insert(first, merged.begin(), merged.end());
}

}  // namespace shard::plan::verification
