// What a configuration of another tool becomes: options of ours, and an account of every key.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shard::foreign {

/// How sure a value is.
enum class Certainty : std::uint8_t {
  stated,   ///< the file says so
  assumed,  ///< the file leaves it to the framework ("auto"), and this is what that takes by default
};

/// An option of ours, with its value as our command line takes it.
struct Setting {
  std::string option;  ///< without dashes
  std::string value;
  std::string pointer;  ///< of the key that it comes from, RFC 6901
  int line = 0;
  Certainty certainty = Certainty::stated;
  std::string file{};  ///< where it stands, if not in the file that was read but in one that it names
  friend bool operator==(const Setting&, const Setting&) = default;
};

/// A key that changes nothing here, and why.
struct LeftOut {
  std::string key;  ///< its pointer; it may stand for all below it
  std::string reason;
};

/// A key with which the tool's run is one that no strategy of ours describes: pipelines, sequences or experts over
/// ranks.
struct NotPredicted {
  std::string key;  ///< its pointer
  int line = 0;
  std::string reason;
};

struct ForeignConfig {
  std::string tool;
  std::string framework{};              ///< whose run it describes, as --like takes it; empty: it does not say
  std::vector<Setting> settings;        ///< each option at most once
  std::vector<std::string> understood;  ///< pointers of keys that were followed, also those that follow from others
  std::vector<LeftOut> left_out;        ///< every other leaf, each once
  std::vector<NotPredicted> not_predicted{};  ///< of the left out: what would make any answer one about another run
};

/// What is known from elsewhere when a file is read.
struct Given {
  /// What the command line says of one of our options; nothing where it leaves it open. It wins.
  std::function<std::optional<std::string>(std::string_view option)> option = [](std::string_view) {
    return std::optional<std::string>{};
  };
  /// Whether the answer is to be the framework's own, so that options of it alone count too.
  std::function<bool()> framework_answers = [] { return false; };
  /// Width of the model that is given, for what a framework derives from it.
  std::function<std::optional<std::int64_t>()> hidden_size = [] { return std::optional<std::int64_t>{}; };
};

}  // namespace shard::foreign
