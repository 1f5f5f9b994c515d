// The report as one page.
#include <string>

#include "traces/base/printable.h"
#include "traces/base/sha256.h"
#include "viewer/commands/report.h"

namespace shard::view {
namespace {

constexpr std::string_view kStyle = R"(
:root { --ground: #ffffff; --text: #1d222b; --dim: #5f6979; --line: #d9dee6; --card: #f5f7fa; --accent: #1f66d0; }
.dark { --ground: #14161b; --text: #e4e8ef; --dim: #97a0b0; --line: #2f3541; --card: #1d2129; --accent: #5ea3ff; }
html { background: var(--ground); }
body { font: 15px/1.55 system-ui, "DejaVu Sans", sans-serif; color: var(--text); background: var(--ground);
  max-width: 1240px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 25px; margin: 0 0 12px; } h2 { font-size: 17px; margin: 36px 0 10px; }
ul.verdicts { list-style: none; padding: 14px 18px; margin: 0; background: var(--card); border-left: 4px solid var(--accent); }
figure { margin: 0; border: 1px solid var(--line); } img { display: block; width: 100%; height: auto; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13.5px; min-width: 50%; }
th { text-align: left; color: var(--dim); font-weight: 600; border-bottom: 2px solid var(--line); }
th, td { padding: 4px 14px 4px 0; } td { border-bottom: 1px solid var(--line); }
.right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td { max-width: 70ch; overflow-wrap: anywhere; } tbody tr:hover { background: var(--card); }
th { cursor: pointer; } th::after { content: attr(data-order); color: var(--accent); }
input.filter { font: inherit; font-size: 13px; color: inherit; background: var(--card); border: 1px solid var(--line);
  padding: 3px 8px; margin: 0 0 8px; width: 26ch; }
p.note { color: var(--dim); font-size: 13px; margin: 8px 0 0; }
)";

/// Tables sort by a click on a heading, by number where cells begin with one, and show the rows that contain what is
/// typed. A page without scripts shows all of it, in the order of the report.
constexpr std::string_view kScript = R"JS(
for (const scroll of document.querySelectorAll('.scroll')) {
  const table = scroll.querySelector('table'), body = table.tBodies[0], rows = [...body.rows];
  const units = {B: 1, KiB: 1024, MiB: 1048576, GiB: 1073741824, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, '%': 1};
  const key = (row, column) => {
    const text = row.cells[column].textContent.trim(), found = /^([+-]?[\d,.]+)\s*(\S*)/.exec(text);
    const number = found ? parseFloat(found[1].replaceAll(',', '')) * (units[found[2]] ?? 1) : NaN;
    return Number.isNaN(number) ? text : number;
  };
  const order = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === 'number' ? -1 : 1;
  [...table.tHead.rows[0].cells].forEach((head, column) => head.addEventListener('click', () => {
    const down = head.dataset.order !== ' \u25BE';
    for (const other of table.tHead.rows[0].cells) delete other.dataset.order;
    head.dataset.order = down ? ' \u25BE' : ' \u25B4';
    rows.sort((x, y) => order(key(x, column), key(y, column)) * (down ? -1 : 1));
    body.append(...rows);
  }));
  if (rows.length < 8) continue;
  const filter = document.createElement('input');
  filter.className = 'filter';
  filter.placeholder = 'show rows with ...';
  filter.addEventListener('input', () => {
    const wanted = filter.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  scroll.before(filter);
}
)JS";

/// A cell as text: the table's own Markdown form would escape for Markdown.
std::string cell_text(const cli::Cell& cell) {
  if (!cell.shown.empty()) return cell.shown;
  if (const auto* text = std::get_if<std::string>(&cell.value)) return *text;
  if (const auto* count = std::get_if<std::int64_t>(&cell.value)) return std::to_string(*count);
  if (const auto* number = std::get_if<double>(&cell.value)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&cell.value)) return *flag ? "yes" : "no";
  return "";
}

std::string table_html(const cli::Table& table) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  const auto open = [&](const char* tag, std::size_t column) {
    html += std::string("<") + tag + (table.columns[column].align == cli::Align::right ? " class=\"right\">" : ">");
  };
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    open("th", c);
    html += markup_text(table.columns[c].title) + "</th>";
  }
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      open("td", c);
      html += markup_text(cell_text(row[c])) + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = (word << 8U) | (k < count ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[(word >> (18 - 6 * k)) & 0x3FU] : '=';
  }
  return text;
}

namespace {

std::string sha256_base64(std::string_view text) {
  const std::string digits = sha256_hex(text);
  std::string hash;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    hash += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return base64(hash);
}

/// What the page may do: show its own pictures, in its own style, and run its own script. Nothing is fetched or sent.
std::string policy() {
  return "default-src 'none'; img-src data:; style-src 'sha256-" + sha256_base64(kStyle) + "'; script-src 'sha256-" +
         sha256_base64(kScript) + "'; base-uri 'none'; form-action 'none'";
}

}  // namespace

std::string to_html(const Report& report, bool light) {
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\"" + std::string(light ? "" : " class=\"dark\"") +
                     ">\n<head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"" +
                     policy() +
                     "\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
                     markup_text(report.title) + "</title>\n<style>" + std::string(kStyle) +
                     "</style></head>\n<body>\n<h1>" + markup_text(report.title) + "</h1>\n";
  if (!report.verdicts.empty()) {
    html += "<ul class=\"verdicts\">\n";
    for (const std::string& verdict : report.verdicts) html += "<li>" + markup_text(verdict) + "</li>\n";
    html += "</ul>\n";
  }
  for (const ReportPicture& picture : report.pictures) {
    html += "<h2>" + markup_text(picture.title) + "</h2>\n<figure><img alt=\"" + markup_text(picture.title) +
            "\" src=\"data:image/png;base64," + base64(picture.png) + "\"></figure>\n";
  }
  for (const ReportTable& table : report.tables) {
    html += "<h2>" + markup_text(table.title) + "</h2>\n" + table_html(table.table);
    if (!table.note.empty()) html += "<p class=\"note\">" + markup_text(table.note) + "</p>\n";
  }
  return html + "<script>" + std::string(kScript) + "</script>\n</body>\n</html>\n";
}

}  // namespace shard::view
