// Notes to JSON and back.
#include "viewer/commands/notes_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "traces/export/output_file.h"

namespace shard::view {
namespace {

using Json = nlohmann::ordered_json;

/// More than anyone writes; a larger file is something else.
constexpr std::uintmax_t kMaxBytes = 16U << 20U;

}  // namespace

NotesFile::NotesFile(const std::filesystem::path& trace) : path_(trace) {
  path_ += ".notes.json";
}

Result<std::vector<Note>> NotesFile::load() {
  last_.clear();
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  if (error) return last_;
  const Error malformed{Errc::malformed, "is no file of notes, and is left as it is", path_.string(),
                        "move it away: new notes are then kept"};
  usable_ = false;
  std::ifstream in(path_, std::ios::binary);
  if (size > kMaxBytes || !in) return malformed;
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const Json json = Json::parse(text, nullptr, false);
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
  Result<OutputFile> out = OutputFile::create(path_);
  if (!out) return out.error();
  out->write(Json{{"schema_version", 1}, {"notes", list}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return out->finish();
}

}  // namespace shard::view
