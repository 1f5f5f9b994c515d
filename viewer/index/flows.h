// What a span waits for and what waits for it: gather -> compute, gradient -> reduce -> step -> gather.
#pragma once

#include <cstdint>
#include <vector>

#include "viewer/index/document.h"

namespace shard::view {

struct FlowLink {
  std::uint32_t from = 0, to = 0;  ///< spans
  FlowKind kind = FlowKind::dependency;
  bool derived = false;  ///< told from units, memory and names, not from the file

  friend bool operator==(const FlowLink&, const FlowLink&) = default;
};

/// The arrows of a trace, by span. Where the file has flows only those are used. Else they follow the buffers of units:
/// the op that acquires a gathered or a gradient buffer leads to the op that gives it back (gather -> its last user,
/// backward -> reduction -> step), and an optimizer step of a unit to the unit's next gather.
/// Building takes a pass over spans and memory events: for a large trace, off the drawing thread.
class FlowIndex {
 public:
  explicit FlowIndex(const Document& document);

  [[nodiscard]] std::size_t size() const { return links_.size(); }
  [[nodiscard]] const std::vector<FlowLink>& links() const { return links_; }  ///< by from, then to
  /// Arrows that leave a span, by target; that reach it, by source.
  [[nodiscard]] std::vector<FlowLink> from(std::uint32_t span) const;
  [[nodiscard]] std::vector<FlowLink> to(std::uint32_t span) const;

 private:
  std::vector<FlowLink> links_;
  std::vector<std::uint32_t> by_target_;  ///< positions in links_, by to, then from
};

}  // namespace shard::view
