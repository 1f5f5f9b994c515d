// The tools whose configurations are told apart by their content, and what reads each.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/foreign/document.h"
#include "sim/foreign/foreign_config.h"
#include "traces/base/result.h"

namespace shard::foreign {

/// A file that is to be told apart.
struct Text {
  std::string file;  ///< as it was named
  std::string content;
  bool is_json = false;         ///< begins as a JSON object does, well formed or not
  std::optional<Value> tree{};  ///< the table that it is, as JSON or else as YAML; none where it is neither
};

/// Reads a file of at most 1 MiB and its tree. Errors as read_file().
[[nodiscard]] Result<Text> read_text(const std::filesystem::path& path);
/// The same of a content that is at hand.
[[nodiscard]] Text text_of(std::string file, std::string content);

struct Row;

struct Tool {
  std::string_view name;
  std::string_view option;  ///< that takes its files, without dashes; empty: none does
  std::string_view help;    ///< of that option; where there is none, what takes its place
  bool (*recognises)(const Text& text);
  Result<ForeignConfig> (*read)(const Text& text, const Given& given) = nullptr;
  std::string_view looks_for{};              ///< keys that most of its files have, for messages
  std::span<const Row> (*rows)() = nullptr;  ///< its table, for the documents
};

/// In the order in which they are tried.
[[nodiscard]] std::span<const Tool> tools();
/// The first tool that knows the file as its own; null for none.
[[nodiscard]] const Tool* recognise(const Text& text);
/// The tool of an option; null for none.
[[nodiscard]] const Tool* tool_of_option(std::string_view option);

/// What a tool's file says. A file that another tool knows as its own is a contradiction that names it; one of which
/// no key is understood is malformed.
[[nodiscard]] Result<ForeignConfig> read_as(const Tool& tool, const Text& text, const Given& given);
/// The file is of a tool that has no reader, or that another option takes.
[[nodiscard]] Error belongs_to(const Tool& tool, const Text& text);

}  // namespace shard::foreign
