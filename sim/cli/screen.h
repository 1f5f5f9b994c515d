// The one way text gets to a reader: what is not ours is made printable, and only what says so styles a terminal.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

namespace shard::cli {

/// What we ask of a terminal.
enum class Mark { plain, bold, alarm, line_begin, clear_line };

/// Text with marks of ours in it. Whatever is added is made printable (traces/base/printable.h), so that a mark never
/// comes from a file, a name or the command line. The one thing that reaches a Screen's stream as it is.
class Styled {
 public:
  Styled() = default;
  Styled(std::string_view text);                                       // NOLINT: plain text is text without marks
  Styled(const std::string& text) : Styled(std::string_view(text)) {}  // NOLINT
  Styled(const char* text) : Styled(std::string_view(text)) {}         // NOLINT

  Styled& add(const Styled& more);
  Styled& add(Mark mark);
  /// What follows is in a colour of the terminal's 256.
  Styled& add_color(int color);

  /// With the marks: for a stream, or for a file that is no terminal.
  [[nodiscard]] const std::string& str() const { return text_; }

  friend std::ostream& operator<<(std::ostream& out, const Styled& styled);
  friend bool operator==(const Styled& a, std::string_view b) { return a.text_ == b; }

 private:
  std::string text_;
};

/// While it lives, all that is written to the stream is made printable, but for Styled. Text may come in pieces of any
/// size; threads may write at once, as they may to std::cout and std::cerr.
class Screen {
 public:
  explicit Screen(std::ostream& out);
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

 private:
  class Buffer;
  friend std::ostream& operator<<(std::ostream& out, const Styled& styled);
  static bool put_styled(std::streambuf* buffer, std::string_view text);

  std::ostream& out_;
  std::streambuf* below_;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace shard::cli
