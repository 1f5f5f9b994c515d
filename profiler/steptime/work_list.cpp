// Lines of fields between tabs.
#include "profiler/steptime/work_list.h"

#include <charconv>
#include <optional>
#include <unordered_map>

#include "traces/base/read_file.h"

namespace shard::steptime {
namespace {

/// How many numbers a kind has, and whether a name follows.
struct Shape {
  std::size_t numbers = 0;
  bool named = false;
};

std::optional<Shape> shape_of(char kind) {
  switch (static_cast<Work>(kind)) {
    case Work::kernel: return Shape{6, true};
    case Work::product: return Shape{8, true};
    case Work::collective: return Shape{7};
    case Work::copy: return Shape{3};
    case Work::fill: return Shape{1};
    case Work::library: return Shape{0, true};
    case Work::record: return Shape{1};
    case Work::wait: return Shape{1};
    case Work::host_wait: return Shape{2};
    case Work::graph: return Shape{1};
    case Work::instance: return Shape{2};
    case Work::step: return Shape{1};
  }
  return {};
}

class Lines {
 public:
  explicit Lines(WorkList& list) : list_(list) {}

  bool add(std::string_view line) {
    const std::optional<Shape> shape = line.empty() ? std::nullopt : shape_of(line.front());
    if (!shape) return false;
    line.remove_prefix(1);
    WorkItem item;
    item.kind = static_cast<Work>(line.data()[-1]);
    for (std::int64_t* const to : {&item.time_ns, &item.thread, &item.capture, &item.stream})
      if (!number(line, *to)) return false;
    for (std::size_t i = 0; i < shape->numbers; ++i)
      if (!number(line, item.numbers[i])) return false;
    if (shape->named) {
      if (!line.starts_with('\t')) return false;
      item.name = name(line.substr(1));
    } else if (!line.empty()) {
      return false;
    }
    list_.items.push_back(item);
    return true;
  }

 private:
  static bool number(std::string_view& line, std::int64_t& to) {
    if (!line.starts_with('\t')) return false;
    const auto [end, fault] = std::from_chars(line.data() + 1, line.data() + line.size(), to);
    if (fault != std::errc()) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    return true;
  }
  std::int32_t name(std::string_view text) {
    const auto [entry, is_new] = names_.try_emplace(std::string(text), static_cast<std::int32_t>(list_.names.size()));
    if (is_new) list_.names.emplace_back(text);
    return entry->second;
  }

  WorkList& list_;
  std::unordered_map<std::string, std::int32_t> names_;
};

Error malformed(const std::string& what, const std::string& where) {
  return {.code = Errc::malformed, .what = what, .where = where, .help = "the file as the stand-in GPU wrote it"};
}

}  // namespace

Result<WorkList> parse_work(std::string_view text, const std::string& where) {
  WorkList list;
  Lines lines(list);
  std::int64_t row = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const bool is_right = ++row == 1 ? line == standin::kWorkHeader : lines.add(line);
    if (!is_right)
      return malformed(row == 1 ? "this is no list of what a program gave the GPU" : "a line is not one of its kind",
                       where + ":" + std::to_string(row));
  }
  if (row == 0) return malformed("this is no list of what a program gave the GPU", where);
  return list;
}

Result<WorkList> read_work(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, "what a program gave the GPU", Bytes{std::int64_t{1} << 32});
  if (!text) return text.error();
  return parse_work(*text, path.string());
}

}  // namespace shard::steptime
