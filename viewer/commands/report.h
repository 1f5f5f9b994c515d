// What a report says, apart from the form it is written in.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/table.h"
#include "sim/commands/holders_options.h"
#include "viewer/ui/session.h"

namespace shard::view {

struct ReportTable {
  std::string title;
  cli::Table table;
  std::string note;  ///< under the table; may be empty
};

struct ReportPicture {
  std::string title;
  std::string png;  ///< the file's bytes
  int width = 0;    ///< at which it is shown, logical pixels
};

struct Report {
  std::string title;
  std::vector<std::string> verdicts;  ///< one sentence each, the most important first
  std::vector<ReportPicture> pictures;
  std::vector<ReportTable> tables;
  std::optional<commands::HoldersAnswer> held;  ///< of an allocator's recording: what the tables are made from
};

/// Numbers, memory and compare pictures, largest holders at the peak, residuals. `theme_light` for print.
[[nodiscard]] Result<Report> make_report(const Session& session, bool light,
                                         const commands::HoldersOptions& options = {});

/// As people read bytes, and as the number that they are.
[[nodiscard]] cli::Cell bytes_cell(std::int64_t bytes);

/// Adds where the time went: devices, steps, collectives, copies, kernels, operations of the host.
void add_profile(const Session& session, Report& report);

/// One self-contained page: pictures are inside.
[[nodiscard]] std::string to_html(const Report& report, bool light);
[[nodiscard]] std::string to_markdown(const Report& report);

/// RFC 4648, section 4.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace shard::view
