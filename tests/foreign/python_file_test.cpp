// Is a Python file read as Python would load it, as far as that goes without running it?
#include "sim/foreign/python_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace shard::foreign {
namespace {

using ::testing::StartsWith;

using PythonKind = PythonValue::Kind;

std::string shown(const PythonValue& value) {
  switch (value.kind) {
    case PythonKind::none: return "None";
    case PythonKind::boolean: return value.flag ? "True" : "False";
    case PythonKind::integer: return std::to_string(value.integer);
    case PythonKind::real: return std::to_string(value.real);
    case PythonKind::text: return "'" + value.text + "'";
    case PythonKind::symbol:
    case PythonKind::call: return value.text;
    case PythonKind::opaque: return "?" + value.text;
    case PythonKind::list: {
      std::string text = "[";
      for (const PythonValue& each : value.items) text += (text.size() > 1 ? ", " : "") + shown(each);
      return text + "]";
    }
    case PythonKind::table: {
      std::string text = "{";
      for (const auto& [key, each] : value.entries) text += (text.size() > 1 ? ", " : "") + key + ": " + shown(each);
      return text + "}";
    }
  }
  return "";
}

std::string shown_python(std::string_view source) {
  const Result<PythonFile> file = read_python(source, "c.py");
  return file ? shown(file->root) : to_string(file.error());
}

TEST(PythonFile, LiteralsAreWhatPythonMakesOfThem) {
  EXPECT_EQ(shown_python("a = 1_000\nb = 0x10\nc = 1e-3\nd = .5\ne = 'x' \"y\"\nf = r'\\n'\ng = None\nh = False\n"),
            "{a: 1000, b: 16, c: 0.001000, d: 0.500000, e: 'xy', f: '\\n', g: None, h: False}");
  EXPECT_EQ(shown_python("a = (1, 2,)\nb = []\nc = {1, 2}\nd = {'x': 1, 'y': {}}\ne = 1,\n"),
            "{a: [1, 2], b: [], c: [1, 2], d: {x: 1, y: {}}, e: [1]}");
  EXPECT_EQ(shown_python("a = '''two\nlines'''  # a comment\n"), "{a: 'two\nlines'}");
}

TEST(PythonFile, ArithmeticIsPythons) {
  EXPECT_EQ(
      shown_python(
          "a = 2**5\nb = 7 // 2\nc = -7 // 2\nd = -7 % 3\ne = 1 / 4\nf = 2 * (3 + 4) - 1\ng = -2**2\nh = 2**-1\n"),
      "{a: 32, b: 3, c: -4, d: 2, e: 0.250000, f: 13, g: -4, h: 0.500000}");
  EXPECT_EQ(
      shown_python("a = 224\nb = (a // 16)**2 + 1\nc = int(60 * 0.36)\nd = 1 << 4\ne = 3 if a > 4 else undefined\n"),
      "{a: 224, b: 197, c: 21, d: 16, e: 3}");
  EXPECT_EQ(shown_python("a = max(3, 4)\nb = len('abc')\nc = not a\nd = a == 4 and b\ne = 2**64\n"),
            "{a: 4, b: 3, c: False, d: 3, e: 18446744073709551616.000000}");
}

TEST(PythonFile, DictsNamesAndClasses) {
  EXPECT_EQ(
      shown_python(
          "from colossalai.amp import AMP_TYPE\nfrom model import GPT2 as G\n"
          "fp16 = dict(mode=AMP_TYPE.NAIVE)\nmodel = dict(type=G, s=TensorShardStrategy())\n"
          "parallel = dict(pipeline=2)\nn = parallel['pipeline']\nmore = dict(parallel, x=1)\nm = {**parallel}\n"),
      "{fp16: {mode: AMP_TYPE.NAIVE}, model: {type: GPT2, s: TensorShardStrategy()}, parallel: {pipeline: 2}, "
      "n: 2, more: {pipeline: 2, x: 1}, m: {pipeline: 2}}");
  EXPECT_EQ(shown_python("a = {}\na['b'] = 1\na['c'] = {}\na['c']['d'] = 2\nx, y = 1, 2\nz: int = 3\nz += 4\n"),
            "{a: {b: 1, c: {d: 2}}, x: 1, y: 2, z: 7}");
}

TEST(PythonFile, WhatOnlyARunKnowsStaysAsItsSource) {
  EXPECT_EQ(
      shown_python("import os\na = os.environ['DATA']\nb = f'{a}/x'\nc = [i for i in range(3)]\nd = lambda x: x + 1\n"
                   "e = os.environ.get('N', 8)\nf = int(os.getenv('M', '4'))\n"),
      "{a: ?os.environ['DATA'], b: ?f'{a}/x', c: ?[i for i in range(3)], d: ?lambda x: x + 1, e: 8, f: 4}");
}

TEST(PythonFile, ConditionsThatAreKnownAreFollowed) {
  EXPECT_EQ(
      shown_python("import os\nbig = True\nif big:\n  n = 8\nelif 1 / 0:\n  n = 1\nif os.path.exists('x'):\n  m = 2\n"),
      "{big: True, n: 8, m: ?}");
}

TEST(PythonFile, CallsByKeywordAreFoundInFunctions) {
  const Result<PythonFile> file = read_python(
      "def wrap(model, policy: str = 'auto', *args, **kw):\n"
      "    if policy:\n"
      "        model = GeminiDDP(model, device=get(), placement_policy=policy, pin_memory=True)\n"
      "    return model\n\nclass A(B):\n    def f(self): return HybridAdam(self.p(), lr=1e-3)\n",
      "t.py");
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(file->calls.size(), 2u);
  EXPECT_EQ(shown(file->calls[0].table), "{device: ?get(), placement_policy: 'auto', pin_memory: True}");
  EXPECT_EQ(file->calls[1].name, "HybridAdam");
}

TEST(PythonFile, WhatPythonStopsAtNamesLineAndKey) {
  EXPECT_THAT(
      shown_python("x = 1\nzero = dict(model_config=dict(shard_strategy=TensorShardStrategi()))\n"),
      StartsWith(
          "c.py:2: key '/zero/model_config/shard_strategy': the name 'TensorShardStrategi' is not defined\n  t"));
  EXPECT_THAT(shown_python("a = {}\nb = a['c']\n"), StartsWith("c.py:2: key '/b': no key 'c'\n  try"));
  EXPECT_THAT(shown_python("a = 9**9**9\n"), StartsWith("c.py:1: key '/a': the number is too large\n"));
  EXPECT_THAT(shown_python("a = 1 / 0\n"), StartsWith("c.py:1: key '/a': division by zero"));
  EXPECT_THAT(shown_python("zero = dict(a=1 b=2)\n"), StartsWith("c.py:1: 'b' stands where ',' is missing\n  try:"));
  EXPECT_THAT(shown_python("zero = dict(a=1,\n"), StartsWith("c.py:1: '(' is never closed\n"));
  EXPECT_THAT(shown_python("a = 'x\n"), StartsWith("c.py:1: a string is never closed\n"));
  EXPECT_THAT(shown_python("a = dict(x=1, x=2)\n"), StartsWith("c.py:1: the keyword 'x' is given twice\n"));
  EXPECT_THAT(shown_python("a = \n"), StartsWith("c.py:1: a value is missing at the end of the line\n"));
  EXPECT_THAT(shown_python("if True:\na = 1\n"), StartsWith("c.py:2: "));
  EXPECT_THAT(shown_python("  a = 1\n"), StartsWith("c.py:1: unexpected indent"));
}

// Each of these would take Python itself, or a careless reader, for ever or all memory.
TEST(PythonFile, BombsAreRefusedAtOnce) {
  std::string doubling = "a = [1, 2]\n";
  for (int i = 0; i < 60; ++i) doubling += "a = [a, a]\n";
  const std::string many(100'000, '(');
  std::string nested(60, '(');
  nested = "a = " + nested + "1" + std::string(60, ')') + "\n";
  std::string chain = "a";
  for (int i = 0; i < 100'000; ++i) chain += "=a";
  std::string texts = "a = 'xxxxxxxxxxxxxxxx'\n";
  for (int i = 0; i < 64; ++i) texts += "a = a + a\n";
  std::string minus = "a = " + std::string(200'000, '-') + "1\n";
  std::string powers = "a = 2";
  for (int i = 0; i < 100'000; ++i) powers += "**1";
  std::string blocks;
  for (int i = 0; i < 300; ++i) blocks += std::string(static_cast<std::size_t>(i), ' ') + "if 1:\n";
  for (const std::string& each : {doubling, "a = " + many, chain, texts, powers, blocks}) {
    const Result<PythonFile> file = read_python(each, "bomb.py");
    EXPECT_FALSE(file);
    EXPECT_TRUE(file || file.error().code == Errc::malformed);
  }
  EXPECT_TRUE(read_python(nested, "n.py"));
  EXPECT_TRUE(read_python(minus, "m.py"));
  EXPECT_FALSE(read_python(std::string((1 << 20) + 1, ' '), "big.py"));
}

}  // namespace
}  // namespace shard::foreign
