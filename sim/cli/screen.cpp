// A stream buffer in front of the stream's own.
#include "sim/cli/screen.h"

#include <mutex>
#include <streambuf>
#include <utility>

#include "traces/base/printable.h"

namespace shard::cli {

Styled::Styled(std::string_view text) : text_(printable(text)) {}

Styled& Styled::add(const Styled& more) {
  text_ += more.text_;
  return *this;
}

Styled& Styled::add(Mark mark) {
  switch (mark) {
    case Mark::plain: text_ += "\033[0m"; break;
    case Mark::bold: text_ += "\033[1m"; break;
    case Mark::alarm: text_ += "\033[1;31m"; break;
    case Mark::line_begin: text_ += '\r'; break;
    case Mark::clear_line: text_ += "\033[K"; break;
  }
  return *this;
}

Styled& Styled::add_color(int color) {
  text_ += "\033[38;5;" + std::to_string(color) + "m";
  return *this;
}

class Screen::Buffer final : public std::streambuf {
 public:
  explicit Buffer(std::streambuf* below) : below_(below) {}

  bool put_styled(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    return put_held() && put(text);
  }
  /// Nothing more comes: the begin of a character is none.
  void end() {
    const std::scoped_lock lock(mutex_);
    put_held();
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    const std::scoped_lock lock(mutex_);
    std::string all = held_;
    all.append(text, static_cast<std::size_t>(count));
    // A character that is written byte by byte is judged when it is whole.
    const std::size_t ready = all.size() - bytes_of_broken_end(all);
    held_ = all.substr(ready);
    return put(printable(std::string_view(all).substr(0, ready))) ? count : 0;
  }
  int sync() override {
    const std::scoped_lock lock(mutex_);
    return below_->pubsync();
  }

 private:
  bool put(std::string_view text) {
    const auto count = static_cast<std::streamsize>(text.size());
    return below_->sputn(text.data(), count) == count;
  }
  bool put_held() { return put(printable(std::exchange(held_, {}))); }

  std::streambuf* below_;
  std::mutex mutex_;
  std::string held_;  ///< the begin of a character
};

namespace {

/// std::ios::rdbuf(b) forgets that something could not be written.
void exchange_buffer(std::ostream& out, std::streambuf* buffer) {
  const std::ios::iostate state = out.rdstate();
  out.rdbuf(buffer);
  out.setstate(state);
}

}  // namespace

Screen::Screen(std::ostream& out) : out_(out), below_(out.rdbuf()), buffer_(std::make_unique<Buffer>(out.rdbuf())) {
  exchange_buffer(out_, buffer_.get());
}

Screen::~Screen() {
  buffer_->end();
  exchange_buffer(out_, below_);
}

bool Screen::put_styled(std::streambuf* buffer, std::string_view text) {
  auto* const screen = dynamic_cast<Buffer*>(buffer);
  if (screen != nullptr) return screen->put_styled(text);
  const auto count = static_cast<std::streamsize>(text.size());
  return buffer->sputn(text.data(), count) == count;
}

std::ostream& operator<<(std::ostream& out, const Styled& styled) {
  const std::ostream::sentry ready(out);
  if (ready && !Screen::put_styled(out.rdbuf(), styled.str())) out.setstate(std::ios::badbit);
  return out;
}

}  // namespace shard::cli
