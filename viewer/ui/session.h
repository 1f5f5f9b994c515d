// What is open: documents, how the others compare with the first, the result of a search, and what went wrong.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "viewer/index/compare_view.h"
#include "viewer/index/document.h"
#include "viewer/index/search_result.h"

namespace shard::view {

/// Something a user has to know about a file: refused, or only partly readable.
struct Problem {
  std::string file;
  std::string what;  ///< what is wrong and where
  std::string kept;  ///< what is shown nevertheless; empty: nothing
  std::string help;  ///< the smallest thing that helps; may be empty
};

/// Immutable while it is shown.
struct Session {
  std::vector<Document> documents;    ///< the first one's clock is the axis
  std::vector<CompareView> compared;  ///< compared[i]: documents[0] with documents[i + 1]
  std::optional<SearchResult> search;
  std::vector<Problem> problems;

  [[nodiscard]] bool empty() const { return documents.empty(); }
};

/// Of the session, which it lives as long as; the identity for the first document.
[[nodiscard]] const Alignment& alignment_of(const Session& session, AlignMode mode, std::size_t document);

/// The range of all documents on the first one's axis.
[[nodiscard]] TimeRange whole_range(const Session& session, AlignMode mode = AlignMode::step);

/// "predicted", "measured"; the file's name where several documents are of one kind.
[[nodiscard]] std::string short_name(const Session& session, std::size_t document);

}  // namespace shard::view
