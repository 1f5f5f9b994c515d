// The report as Markdown, pictures inside.
#include "viewer/commands/report.h"

namespace shard::view {

std::string to_markdown(const Report& report) {
  std::string text = "# " + cli::markdown_text(report.title) + "\n\n";
  for (const std::string& verdict : report.verdicts) text += "- " + cli::markdown_text(verdict) + "\n";
  for (const ReportTable& table : report.tables) {
    text +=
        "\n## " + cli::markdown_text(table.title) + "\n\n" + cli::render(table.table, cli::Format::markdown, {}).str();
    if (!table.note.empty()) text += "\n" + cli::markdown_text(table.note) + "\n";
  }
  // Last, since a reader of the bare text meets a wall of base64 here.
  for (std::size_t i = 0; i < report.pictures.size(); ++i)
    text.append("\n## ")
        .append(cli::markdown_text(report.pictures[i].title))
        .append("\n\n![")
        .append(cli::markdown_text(report.pictures[i].title))
        .append("][picture-" + std::to_string(i + 1) + "]\n");
  text += "\n";
  for (std::size_t i = 0; i < report.pictures.size(); ++i)
    text += "[picture-" + std::to_string(i + 1) + "]: data:image/png;base64," + base64(report.pictures[i].png) + "\n";
  return text;
}

}  // namespace shard::view
