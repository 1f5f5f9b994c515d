// nlohmann's parser as a source of events.
#include "executor/state/safetensors_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace shard::safetensors {
namespace {

using Kind = JsonEvent::Kind;

/// Headers need 3, what stands beside an index's map hardly more.
constexpr int kMostDepth = 32;
/// Of the parser's own words, which repeat what it read.
constexpr std::size_t kWhyKept = 200;

/// The interface that nlohmann's parser speaks to.
class Events {
 public:
  using Json = nlohmann::json;
  explicit Events(JsonListener& listener) : listener_(listener) {}

  bool null() { return give({Kind::other}); }
  bool boolean(bool) { return give({Kind::other}); }
  bool number_integer(Json::number_integer_t) { return give({Kind::other}); }
  bool number_unsigned(Json::number_unsigned_t value) { return give({Kind::number, {}, value}); }
  bool number_float(Json::number_float_t, const std::string&) { return give({Kind::other}); }
  bool string(std::string& value) { return give({Kind::text, std::move(value)}); }
  bool binary(Json::binary_t&) { return give({Kind::other}); }
  bool key(std::string& value) { return give({Kind::key, std::move(value)}); }
  bool start_object(std::size_t) { return deeper() && give({Kind::begin_object}); }
  bool end_object() { return --depth_, give({Kind::end_object}); }
  bool start_array(std::size_t) { return deeper() && give({Kind::begin_list}); }
  bool end_array() { return --depth_, give({Kind::end_list}); }
  bool parse_error(std::size_t at, const std::string&, const Json::exception& error) {
    std::string why = error.what();
    if (const std::size_t bracket = why.find("] "); bracket != std::string::npos) why.erase(0, bracket + 2);
    if (why.size() > kWhyKept) why = why.substr(0, kWhyKept) + "...";
    why_ = "is not JSON, at byte " + std::to_string(at) + ": " + why;
    return false;
  }

  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  bool give(JsonEvent event) { return listener_.take(std::move(event)); }
  bool deeper() {
    if (++depth_ <= kMostDepth) return true;
    why_ = "nests deeper than " + std::to_string(kMostDepth);
    return false;
  }

  JsonListener& listener_;
  int depth_ = 0;
  std::string why_;
};

}  // namespace

Result<void> read_json(std::string_view text, std::string_view where, JsonListener& listener) {
  const auto malformed = [&](std::string what) {
    return Error{Errc::malformed, std::move(what), std::string(where), "copy the file again"};
  };
  if (!text.starts_with('{')) return malformed("does not begin with '{'");
  Events events(listener);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &events) && !events.why().empty())
    return malformed(events.why());
  return {};
}

}  // namespace shard::safetensors
