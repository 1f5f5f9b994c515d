// `shardscope report`: what view shows, as one file.
#include <filesystem>

#include "sim/commands/printing.h"
#include "traces/base/output_file.h"
#include "viewer/commands/commands.h"
#include "viewer/commands/load_session.h"
#include "viewer/commands/notes_file.h"
#include "viewer/commands/report.h"

namespace shard::view {
namespace {

constexpr const char* kReportDetails =
    R"(Writes one self-contained file: the verdicts, pictures of memory, lanes and chunks, peaks, the largest holders at
the peak, where the time went (devices, steps, collectives, copies, kernels, operations of the host), and with several
traces the largest residuals. The form follows the name: .html or .md.
Of a PyTorch memory snapshot it names who held memory at the peak or at --at TIME, line by line of your own code, shows
the allocator's segments, says what their gaps cost, and what other settings of the allocator would have reserved
(of up to 500,000 events); --json adds "peak", as inspect says it. A snapshot and a
profiler's trace of the same run are shown as one.

Exit codes: 0; 65 or 66 a trace that cannot be read; 73 or 74 the report cannot be written; 78 different plans.

Examples:
  shardscope report predicted.sst measured.sst -o report.html
  shardscope report measured.sst -o report.md --json
  shardscope report snapshot.pickle -o report.html --at peak --top 20
)";

nlohmann::ordered_json to_json(const Session& session, const Report& report, const std::string& output,
                               std::int64_t top) {
  nlohmann::ordered_json result = cli::json_document("report");
  result["file"] = output;
  result["title"] = report.title;
  result["verdicts"] = report.verdicts;
  nlohmann::ordered_json& tables = result["tables"] = nlohmann::ordered_json::array();
  for (const ReportTable& table : report.tables)
    tables.push_back({{"title", table.title}, {"rows", cli::to_json(table.table)}, {"note", table.note}});
  const Document& first = session.documents[0];
  if (report.held)
    result["peak"] =
        commands::to_json(first.trace(), *report.held, static_cast<std::size_t>(top), first.range().begin_ns);
  return result;
}

}  // namespace

int report_command(std::span<const std::string> arguments) {
  Sources sources;
  std::string output;
  bool json = false;
  bool dark = false;
  commands::HoldersOptions holders;
  holders.top = 15;
  cli::Command command("shardscope", "report", "writes what view shows as pictures and text", kReportDetails);
  command.add_positional("TRACE", &sources.traces, "traces; the others are compared with the first")
      .required()
      .reads_file(trace_and_notes);
  cli::Group group = command.group("Report");
  group.add("output", &output, "FILE.html|FILE.md", "the file to write").letter('o').required().writes_file();
  group.add_flag("force", &sources.force, "line up traces of different plans");
  group.add_flag("incomplete", &sources.incomplete, commands::kIncompleteHelp);
  group.add_flag("dark", &dark, "dark instead of light");
  group.add_flag("json", &json, "what the report says as one JSON object on stdout");
  holders.add_to(command);
  if (const auto code = commands::parsed(command, arguments)) return *code;
  const std::string form = std::filesystem::path(output).extension().string();
  const bool html = form == ".html" || form == ".htm";
  if (!html && form != ".md" && form != ".markdown")
    return commands::failed({Errc::usage, "'" + output + "' ends in neither .html nor .md", command.describe("output"),
                             "a name that says the form, such as report.html"});
  const Result<Session> session = load_session(sources);
  if (!session) return commands::failed(session.error());
  const Result<Report> report = make_report(*session, !dark, holders);
  if (!report) return commands::failed(report.error());
  const Result<void> written = write_file(output, html ? to_html(*report, !dark) : to_markdown(*report));
  if (!written) return commands::failed(written.error());
  if (json) std::cout << cli::json_text(to_json(*session, *report, output, holders.top));
  return 0;
}

}  // namespace shard::view
