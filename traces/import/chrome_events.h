// Chrome's JSON format, event by event as it is written; what events mean is chrome_json.cpp's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/import/byte_source.h"
#include "traces/import/json_reader.h"
#include "traces/reader.h"

namespace shard::import {

/// A scalar value as it is written.
struct Scalar {
  std::string text;
  bool number = false;
};

/// One member of an event's args.
struct Argument {
  std::string key;
  Scalar value;
};

/// An event as it is written; reused from event to event.
struct ChromeEvent {
  std::string phase, name, category, pid, tid, time, duration, id, scope, bound_id, flow_in, flow_out;
  bool global_id = false;  ///< id counts for all processes
  std::vector<Argument> arguments;
  std::size_t argument_count = 0;

  void clear() {
    for (std::string* text :
         {&phase, &name, &category, &pid, &tid, &time, &duration, &id, &scope, &bound_id, &flow_in, &flow_out}) {
      text->clear();
    }
    global_id = false;
    argument_count = 0;
  }
  [[nodiscard]] const Scalar* argument(std::string_view key) const {
    for (std::size_t i = 0; i < argument_count; ++i) {
      if (arguments[i].key == key) return &arguments[i].value;
    }
    return nullptr;
  }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const {
    std::int64_t value = 0;
    const Scalar* found = argument(key);
    return found != nullptr && to_integer(found->text, value) ? std::optional(value) : std::nullopt;
  }
};

/// Reads a document or a bare list of events. What else the document says comes before, between and after them.
class ChromeEvents {
 public:
  explicit ChromeEvents(ByteSource& source) : source_(source), json_(source) {}

  /// Reads on to the next event; false at the end of the document, whether or not that is where it should be.
  [[nodiscard]] bool next();
  [[nodiscard]] const ChromeEvent& event() const { return event_; }
  /// Ends the reading.
  void stop(std::uint64_t offset, std::string why);

  // What has been read so far came to.
  [[nodiscard]] const std::optional<Truncated>& stopped() const { return stopped_; }  ///< why reading ended early
  [[nodiscard]] bool listed() const { return listed_; }                               ///< a list of events was found
  [[nodiscard]] bool kineto() const { return kineto_; }  ///< it says what PyTorch's profiler says
  /// Scalars of the document and of objects in it, as "object.key".
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  using Token = JsonReader::Token;
  enum class Where : std::uint8_t { start, document, list, end };

  void begin();
  /// One member of the document.
  void member();
  /// One element of the list; whether it is an event.
  bool element();
  /// Where the outermost value ends.
  void finish();
  bool fail();
  bool take_scalar(Token token, Scalar& into);
  bool read_metadata(const std::string& prefix, int levels);
  void keep(const std::string& key, const Scalar& value);
  [[nodiscard]] std::string* field(std::string_view key);
  bool read_event();
  bool read_arguments(bool scoped_id);
  /// The rest of a list of tensors' shapes or types, as text: "4096;;" for [[64, 64], [], [[2], [3]]], the elements of
  /// each that has dimensions of its own; "float;;" for ["float", "", ""].
  bool read_tensors(std::string& into);

  ByteSource& source_;
  JsonReader json_;
  ChromeEvent event_;
  std::map<std::string, std::string> metadata_;
  Where where_ = Where::start;
  bool in_document_ = false;  // the list is a member
  bool listed_ = false;
  bool kineto_ = false;
  std::optional<Truncated> stopped_;
};

}  // namespace shard::import
