// Notes to JSON and back.
#include "viewer/commands/notes_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/base/input_file.h"
#include "traces/base/output_file.h"
#include "traces/base/read_file.h"

namespace shard::view {
namespace {

using Json = nlohmann::ordered_json;

/// More than anyone writes; a larger file is something else.
constexpr Bytes kMostBytes{16 << 20};

}  // namespace

NotesFile::NotesFile(const std::filesystem::path& trace) : path_(trace) {
  path_ += ".notes.json";
}

Result<std::vector<Note>> NotesFile::load() {
  last_.clear();
  if (is_absent(path_)) return last_;
  const Error malformed{Errc::malformed, "is no file of notes, and is left as it is", path_.string(),
                        "move it away: new notes are then kept"};
  usable_ = false;
  const Result<std::string> text = read_file(path_, "file of notes", kMostBytes);
  if (!text) return text.error().code == Errc::malformed ? malformed : text.error();
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("notes") || !json["notes"].is_array()) return malformed;
  std::vector<Note> notes;
  for (const Json& each : json["notes"]) {
    if (!each.is_object() || !each.contains("time_ns") || !each["time_ns"].is_number_integer()) return malformed;
    Note note{each["time_ns"].get<std::int64_t>(), ""};
    if (each.contains("text") && each["text"].is_string()) note.text = each["text"].get<std::string>();
    notes.push_back(std::move(note));
  }
  std::ranges::stable_sort(notes, {}, &Note::time_ns);
  usable_ = true;
  last_ = notes;
  return notes;
}

Result<void> NotesFile::save(const std::vector<Note>& notes) {
  if (notes == last_) return {};
  last_ = notes;
  if (!usable_)
    return Error{Errc::cannot_create, "the notes are not kept: something else is in their place", path_.string(),
                 "move it away and open the trace again"};
  if (notes.empty()) {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    return {};
  }
  Json list = Json::array();
  for (const Note& note : notes) list.push_back({{"time_ns", note.time_ns}, {"text", note.text}});
  return write_file(
      path_, Json{{"schema_version", 1}, {"notes", list}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<std::filesystem::path> trace_and_notes(const std::string& trace) {
  return {trace, NotesFile(trace).path()};
}

}  // namespace shard::view
