// Nothing that commands a terminal is left, and everything else stays as it is.
#include "traces/base/printable.h"

#include <gtest/gtest.h>

namespace shard {
namespace {

TEST(Printable, WhatAnyoneMayReadStays) {
  for (const char* text : {"", "plain text\n  with lines\tand tabs", "Größe 128 KiB", "▁▂▃█", "日本語", "😀", "a\\x1bb"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("a\rb\bc\x7f"), "a\\x0db\\x08c\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u{9b}31m");  // C1: CSI in one character
}

TEST(Printable, TextCannotChangeItsDirection) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u200f"), "a\\u{202e}b\\u{2066}c\\u{200f}");
}

TEST(Printable, BytesThatAreNoTextAreWrittenOut) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");                                             // CSI in one byte
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");                    // cut off
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST(Printable, InJsonItIsTheSameCharacter) {
  EXPECT_EQ(printable("\"a\x7f\u202e\xc2\x9b\"\n", Escape::json), "\"a\\u007f\\u202e\\u009b\"\n");
}

TEST(Printable, OneLineHasNoLineBreaks) {
  EXPECT_EQ(printable_line("a\nb\tc\x1b"), "a\\nb\\tc\\x1b");
}

TEST(Printable, ACharacterThatIsBrokenOffIsFoundAtTheEnd) {
  for (const std::string whole : {"\xc3\xa4", "\xe2\x96\x88", "\xf0\x9f\x98\x80"})
    for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes)
      EXPECT_EQ(bytes_of_broken_end("a" + whole.substr(0, bytes)), bytes % whole.size()) << whole << bytes;
  for (const char* text : {"", "a", "\x80", "\xff", "\xc0", "\xc3\xa4\x80", "\x80\x80\x80\x80"})
    EXPECT_EQ(bytes_of_broken_end(text), 0U) << text;
}

TEST(Printable, AFieldOfCsvIsPrintableAndQuoted) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a\x1b[31m\"b\",\u202e\xff\r"), "\"a\\x1b[31m\"\"b\"\",\\u{202e}\\xff\\x0d\"");
}

TEST(Printable, TextOfMarkupIsPrintableAndNoMarkup) {
  EXPECT_EQ(markup_text("<b a=\"1\">&\x1b\u2066\xfe"), "&lt;b a=&quot;1&quot;&gt;&amp;\\x1b\\u{2066}\\xfe");
}

}  // namespace
}  // namespace shard
