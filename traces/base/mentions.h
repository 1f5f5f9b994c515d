// Errors that name options by their values, and say which options those are.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "traces/base/result.h"

namespace shard {

/// A part of a sentence: plain text, or an option as a user spells it.
struct Piece {
  Piece(std::string plain) : text(std::move(plain)) {}  // NOLINT: implicit, so that sentences read as such
  Piece(const char* plain) : text(plain) {}             // NOLINT
  Piece(std::string_view name, std::string spelled) : text(std::move(spelled)), option(name) {}

  std::string text;
  std::string_view option{};  ///< as Mention::option; empty: plain text
};

/// "--stage 2"
[[nodiscard]] inline Piece option_piece(std::string_view name, const std::string& value) {
  return {name, "--" + std::string(name) + ' ' + value};
}

/// Errc::contradiction whose `what` is the pieces in a row, with a mention of each option.
[[nodiscard]] inline Error contradiction_of(std::initializer_list<Piece> pieces, std::string where, std::string help) {
  Error error{.code = Errc::contradiction, .what = "", .where = std::move(where), .help = std::move(help)};
  for (const Piece& piece : pieces) {
    error.what += piece.text;
    if (!piece.option.empty()) error.mentions.push_back({.option = piece.option, .end = error.what.size()});
  }
  return error;
}

}  // namespace shard
