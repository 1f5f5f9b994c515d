// Reads a document of another tool by its table: one row for each key that is known. Every leaf is accounted for by
// construction: what no row knows is left out as unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/foreign/document.h"
#include "sim/foreign/foreign_config.h"
#include "traces/base/result.h"

namespace shard::foreign {

class Reading;
struct Row;

inline constexpr std::string_view kPlaceholder = "a placeholder that a script fills in, not a value";

/// Accounts for one leaf: by Reading::set(), understand() or leave(). An Error refuses the file.
using Take = Result<void> (*)(Reading& reading, const Leaf& leaf, const Row& row);

/// A key of a tool. "*" stands for any one key, "log-*" for one that begins so, "/**" at the end for everything below.
struct Row {
  std::string_view key;       ///< a pointer
  std::string_view option{};  ///< of ours, which `take` sets; for the documents where `take` works it out
  Take take = nullptr;        ///< none: the key is left out because of `says`
  std::string_view says{};    ///< why it is left out; of a key that is taken, what it becomes
};

class Reading {
 public:
  /// All must outlive it. `file` is the name for errors.
  Reading(std::string_view tool, std::string file, const Value& root, const Given& given)
      : root_(root), given_(given), file_(std::move(file)) {
    config_.tool = tool;
  }

  /// Takes the values out that a template leaves to a script, or of which `is_open` holds: each key is left out for
  /// this reason, and read as not set. Call it before walk(), with the tree that this was made with.
  void open_up(Value& root, bool (*is_open)(const Leaf& leaf), std::string_view reason);

  [[nodiscard]] const Value& root() const { return root_; }
  [[nodiscard]] const Given& given() const { return given_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& tool() const { return config_.tool; }

  /// Takes every leaf by the first row that fits it.
  [[nodiscard]] Result<void> walk(std::span<const Row> rows);

  /// The leaf says this. A setting of the same option that came before is replaced, and its key left out as overridden.
  void set(const Leaf& leaf, std::string_view option, std::string value, Certainty certainty = Certainty::stated);
  /// The file says nothing of the option, and the framework takes this; the key that says most about it is accounted
  /// for by somebody else.
  void assume(const Leaf& leaf, std::string_view option, std::string value);
  /// A file that the key at `pointer` names: what it states counts more than what was set before, what it leaves open
  /// less. Its keys are accounted for below the pointer.
  void add(ForeignConfig other, const std::string& pointer, const std::string& file);
  /// Followed, without an option of its own. Of this and leave() the later call counts.
  void understand(std::string_view pointer);
  void leave(std::string_view pointer, std::string reason);
  /// Left out, and what can be predicted is another run.
  void leave_unpredicted(const Leaf& leaf, std::string reason);

  /// What the command line says of an option, else what the file has set so far.
  [[nodiscard]] std::optional<std::string> in_force(std::string_view option) const;
  [[nodiscard]] const Setting* setting(std::string_view option) const;
  /// Takes back what the file says of an option: its key is left out for this reason. Nothing where it says nothing.
  void drop(std::string_view option, std::string reason);

  /// For Errc::malformed: the value is not of the kind that the key takes.
  [[nodiscard]] Error wrong_kind(const Leaf& leaf, std::string_view wanted) const;
  /// For Errc::contradiction: the framework refuses this.
  [[nodiscard]] Error refused(const Leaf& leaf, std::string why, std::string help) const;

  /// Whose run the file describes, as --like takes it.
  void set_framework(std::string_view name) { config_.framework = name; }

  /// Leaves out what the command line overrides and what nobody accounted for, and hands over.
  [[nodiscard]] ForeignConfig finish();

 private:
  const Value& root_;
  const Given& given_;
  std::string file_;
  ForeignConfig config_;  ///< settings; the accounts come in with finish()
  /// What became of each key that is told: understood, or the reason why not.
  std::map<std::string, std::optional<std::string>, std::less<>> fates_{};
  int suggestions_ = 0;
};

/// "auto": the framework chooses.
[[nodiscard]] bool is_auto(const Value& value);

/// A number, also one in quotes ("8", "1e8"); nothing for anything else.
[[nodiscard]] std::optional<double> number_in(const Value& value);
/// A whole number, also as a float without a fraction (5e8) or in quotes.
[[nodiscard]] std::optional<std::int64_t> whole_in(const Value& value);
/// true or false, also in quotes, in other letters, as 0 or 1.
[[nodiscard]] std::optional<bool> flag_in(const Value& value);
/// As our command line takes it: the shortest that reads back.
[[nodiscard]] std::string number_text(double value);
/// What a template has where a script fills a value in: "${BATCH}", "{{ lr }}", "<path>".
[[nodiscard]] bool is_placeholder(const Value& value);
/// Over how many ranks something is split: a whole number, or the first of a list of them.
[[nodiscard]] Result<std::int64_t> ways_in(const Reading& reading, const Leaf& leaf);
/// For sizes of what is not modelled: understood where it is 1 or less, else the run is not predicted.
[[nodiscard]] Result<void> just_one(Reading& reading, const Leaf& leaf, const Row& row);
/// In small letters.
[[nodiscard]] std::string lower(std::string_view text);

/// For keys that are settled together, after the walk.
[[nodiscard]] Result<void> later(Reading& reading, const Leaf& leaf, const Row& row);
/// Takes for rows that need no more than the option's name: a flag, a whole number of at least 1, a number of at least
/// 0. What is null is left out as not set.
[[nodiscard]] Result<void> take_flag(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_count(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_number(Reading& reading, const Leaf& leaf, const Row& row);

}  // namespace shard::foreign
