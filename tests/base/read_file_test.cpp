// Is what a pipe says told to every reader of the process?
#include "traces/base/read_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

namespace shard {
namespace {

/// A pipe that says the text and ends, as a shell's <(...) does.
class SaidByAPipe {
 public:
  explicit SaidByAPipe(std::string_view text) {
    if (::pipe(ends_.data()) != 0) return;
    written_ = ::write(ends_[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(ends_[1]);
  }
  SaidByAPipe(const SaidByAPipe&) = delete;
  SaidByAPipe& operator=(const SaidByAPipe&) = delete;
  ~SaidByAPipe() { ::close(ends_[0]); }
  [[nodiscard]] bool written() const { return written_; }
  [[nodiscard]] std::string path() const { return "/dev/fd/" + std::to_string(ends_[0]); }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool written_ = false;
};

TEST(ReadFile, APipeSaysTheSameToEveryReader) {
  const SaidByAPipe first("model = gpt2-nano\n"), second("");
  ASSERT_TRUE(first.written());
  for (int reader = 0; reader < 3; ++reader) {
    const Result<std::string> text = read_file(first.path(), "file of options", Bytes{100});
    ASSERT_TRUE(text) << to_string(text.error());
    EXPECT_EQ(*text, "model = gpt2-nano\n");
  }
  EXPECT_EQ(*read_file(second.path(), "file of options", Bytes{100}), "");
}

TEST(ReadFile, WhatAPipeSaidIsHeldToEveryReadersBound) {
  const SaidByAPipe pipe("0123456789");
  ASSERT_TRUE(read_file(pipe.path(), "text", Bytes{10}));
  const Result<std::string> again = read_file(pipe.path(), "text", Bytes{9});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::malformed);
}

}  // namespace
}  // namespace shard
