// What people ask, answered by a page each with the commands to paste: `shardscope help`, `shardscope help fit`.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shard::cli {

struct Question {
  std::string_view topic;     ///< one word: `shardscope help TOPIC`
  std::string_view question;  ///< as people ask it, with its question mark
  std::string_view also;      ///< other words that lead here, separated by blanks
  std::string_view answer;    ///< a page; lines of commands begin with two blanks and "shardscope"
};

/// In the order in which they are listed.
[[nodiscard]] std::span<const Question> questions();

/// By a topic, by another word for it, by the whole question, or by the first word of a phrase that is one of these;
/// letter case, punctuation, '-' and '_' do not count. Null for none.
[[nodiscard]] const Question* find_question(std::string_view phrase);

/// The list of questions; the page of one.
[[nodiscard]] std::string questions_help(std::string_view program);
[[nodiscard]] std::string answered(const Question& question);

}  // namespace shard::cli
