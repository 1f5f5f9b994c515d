// What the keys of --json answers mean: `shardscope help json`, from which docs/json.md is written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shard::cli {

enum class Presence : std::uint8_t {
  always,
  sometimes,  ///< with an option that its meaning names
};

/// One row: keys that are told together.
struct AnswerKey {
  std::string_view keys;     ///< separated by commas
  std::string_view meaning;  ///< in Markdown, within a cell; line ends are blanks
  Presence presence = Presence::always;
};

struct Answer {
  std::string_view command;  ///< with what tells it from other answers: "simulate --like NAME"
  std::span<const AnswerKey> keys;
  std::string_view behind{};  ///< what stands behind the table
};

/// Of commands that predict or describe; of those that run, record or compare; of recordings and programs of others.
[[nodiscard]] std::span<const Answer> predicting_answers();
[[nodiscard]] std::span<const Answer> running_answers();
[[nodiscard]] std::span<const Answer> recording_answers();

/// Null for a command without a table.
[[nodiscard]] const Answer* answer_of(std::string_view command);
/// Each key of a row by itself.
[[nodiscard]] std::vector<std::string> names_of(const AnswerKey& row);

/// All tables in Markdown: what docs/json.md is.
[[nodiscard]] std::string answers_help();

}  // namespace shard::cli
