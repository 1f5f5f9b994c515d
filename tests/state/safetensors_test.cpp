// Is every header that the format does not allow refused, with a word about what is wrong, and every other one read?
#include "executor/state/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace shard::safetensors {
namespace {

using testing::HasSubstr;

/// A header, the bytes of tensors behind it, and a word of the refusal.
struct Hostile {
  const char* name;
  std::string header;
  std::int64_t data_bytes;
  std::string words;
};

void PrintTo(const Hostile& h, std::ostream* out) {
  *out << h.name;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{" + tensor("a", dtype, shape, offsets) + "}";
}

class HostileHeader : public testing::TestWithParam<Hostile> {};

TEST_P(HostileHeader, IsRefused) {
  const Hostile& h = GetParam();
  const auto read = parse_header(h.header, h.data_bytes, "x.safetensors");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::malformed);
  EXPECT_THAT(read.error().what, HasSubstr(h.words));
  EXPECT_THAT(read.error().where, HasSubstr("x.safetensors"));
  EXPECT_FALSE(read.error().help.empty());
}

const Hostile kHostile[] = {
    {"Empty", "", 0, "does not begin with '{'"},
    {"NoObject", "[]", 0, "does not begin with '{'"},
    {"SpaceFirst", " {}", 0, "does not begin with '{'"},
    {"CutShort", R"({"a":)", 0, "not JSON"},
    {"TextBehind", "{}x", 0, "not JSON"},
    {"NotUtf8", "{\"\xff\":{}}", 0, "not JSON"},
    {"NotANumber", R"({"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}})", 4, "not JSON"},
    {"BeyondDouble", one("F32", "1e999", "0,4"), 4, "not JSON"},
    {"DepthBomb", R"({"a":)" + std::string(100'000, '['), 0, "no object of dtype"},
    {"DeepMetadata", R"({"__metadata__":{"a":{}}})", 0, "object of strings"},
    {"MetadataOfNumbers", R"({"__metadata__":{"a":1}})", 0, "object of strings"},
    {"TensorIsANumber", R"({"a":1})", 0, "no object of dtype, shape and data_offsets"},
    {"TensorTwice", "{" + tensor("a", "F32", "1", "0,4") + "," + tensor("a", "F32", "1", "0,4") + "}", 4,
     "'a' stands twice"},
    {"ShapeTwice", R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4, "its shape twice"},
    {"NoDtype", R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "has no dtype"},
    {"NoShape", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "has no shape"},
    {"NoOffsets", R"({"a":{"dtype":"F32","shape":[1]}})", 4, "has no data_offsets"},
    {"UnknownKey", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"b":1}})", 4, "unknown key 'b'"},
    {"UnknownDtype", one("F31", "1", "0,4"), 4, "dtype 'F31'"},
    {"DtypeIsANumber", R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4, "'dtype' is no string"},
    {"NegativeSize", one("F32", "-1", "0,4"), 4, "no list of whole numbers"},
    {"FractionalSize", one("F32", "1.5", "0,4"), 4, "no list of whole numbers"},
    {"ShapeOfShapes", one("F32", "[1]", "0,4"), 4, "no list of whole numbers"},
    {"SizeBeyond63Bits", one("F32", "9223372036854775808", "0,4"), 4, "beyond 2^63"},
    {"ShapeOverflows", one("F32", "4294967296,4294967296,4294967296", "0,4"), 4, "more than 2^60 elements"},
    {"OneOffset", one("F32", "1", "0"), 4, "1 numbers, not begin and end"},
    {"ThreeOffsets", one("F32", "1", "0,4,4"), 4, "3 numbers, not begin and end"},
    {"EndsBeforeItBegins", one("F32", "1", "4,0"), 4, "end before they begin"},
    {"EndsBehindTheFile", one("F32", "2", "0,8"), 4, "end behind the file"},
    {"WrongLength", one("F32", "1", "0,8"), 8, "takes 4 bytes; its data_offsets [0, 8] are 8"},
    {"HalfABit", one("F4", "1", "0,1"), 1, "does not fill whole bytes"},
    {"Overlap", "{" + tensor("a", "F32", "2", "0,8") + "," + tensor("b", "F32", "2", "4,12") + "}", 12,
     "'b' begins at byte 4, inside tensor 'a', which ends at 8"},
    {"SamePlace", "{" + tensor("a", "F32", "1", "0,4") + "," + tensor("b", "F32", "1", "0,4") + "}", 4, "inside"},
    {"HoleInFront", one("F32", "1", "4,8"), 8, "a hole of 4 bytes is before tensor 'a'"},
    {"HoleBetween", "{" + tensor("a", "F32", "1", "0,4") + "," + tensor("b", "F32", "1", "8,12") + "}", 12,
     "a hole of 4 bytes is before tensor 'b'"},
    {"BytesBehind", one("F32", "1", "0,4"), 5, "1 bytes behind tensor 'a' belong to no tensor"},
};

INSTANTIATE_TEST_SUITE_P(Headers, HostileHeader, testing::ValuesIn(kHostile),
                         [](const auto& h) { return h.param.name; });

TEST(SafetensorsHeader, IsReadInTheOrderOfItsBytes) {
  const auto read = parse_header("{" + tensor("b", "BF16", "2,1", "4,8") + R"(,"__metadata__":{"format":"pt"},)" +
                                     tensor("a", "F32", "", "0,4") + "," + tensor("none", "F64", "0,7", "8,8") + "}   ",
                                 8, "x");
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[0].name, "a");
  EXPECT_EQ((*read)[0].elements, 1);
  EXPECT_EQ((*read)[1].name, "b");
  EXPECT_EQ((*read)[1].shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ((*read)[2].elements, 0);
}

TEST(SafetensorsHeader, IsReadAsItWasWritten) {
  const std::vector<Tensor> tensors{
      {.name = "a\"\n", .dtype = "F16", .shape = {3, 2}, .elements = 6, .begin = 0, .end = 12},
      {.name = "b", .dtype = "F32", .shape = {}, .elements = 1, .begin = 12, .end = 16}};
  const std::string header = write_header(tensors);
  EXPECT_EQ(header.size() % 8, 0U);
  const auto read = parse_header(header, 16, "x");
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].name, tensors[0].name);
  EXPECT_EQ((*read)[1].begin, 12);
}

TEST(SafetensorsPrefix, PromisesNoMoreThanTheFileHas) {
  const auto read = [](std::int64_t promised, std::int64_t file_bytes) {
    return read_prefix(write_prefix(promised), file_bytes, "x");
  };
  EXPECT_EQ(*read(92, 100), 92);
  ASSERT_FALSE(read(93, 100));
  EXPECT_THAT(read(93, 100).error().what, HasSubstr("93 bytes; 92 follow"));
  EXPECT_FALSE(read(-1, 100));
  EXPECT_TRUE(read(kMostHeaderBytes, std::int64_t{1} << 40));
  ASSERT_FALSE(read(kMostHeaderBytes + 1, std::int64_t{1} << 40));
  EXPECT_THAT(read(kMostHeaderBytes + 1, std::int64_t{1} << 40).error().what, HasSubstr("more than the format's"));
  EXPECT_THAT(read_prefix({}, 3, "x").error().what, HasSubstr("has 3 bytes"));
  const std::string zip = "PK\x03\x04" + std::string(4, '\x14');
  EXPECT_THAT(read_prefix(std::as_bytes(std::span(zip)), 100, "x").error().what, HasSubstr("pickle of PyTorch"));
}

TEST(SafetensorsIndex, NamesFilesOfItsOwnFolder) {
  const auto read = parse_index(
      R"({"metadata":{"total_size":8,"weight_map":{"c":"/x"}},"weight_map":{"b":"2.safetensors","a":"1.safetensors"}})",
      "x");
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].tensor, "b");
  EXPECT_EQ((*read)[1].file, "1.safetensors");
}

TEST(SafetensorsIndex, IsRefusedWithAWordAboutWhatIsWrong) {
  const std::pair<std::string, const char*> kRows[] = {
      {R"({})", "has no \"weight_map\""},
      {R"({"weight_map":{}})", "has no \"weight_map\""},
      {R"({"weight_map":[]})", "is no object"},
      {R"({"weight_map":"a"})", "is no object"},
      {R"({"weight_map":{"a":1}})", "gives tensor 'a' no file"},
      {R"({"weight_map":{"a":{"b":"c"}}})", "gives tensor 'a' no file"},
      {R"({"weight_map":{"a":"../b"}})", "'../b' of tensor 'a' is no name in the index's own folder"},
      {R"({"weight_map":{"a":"/etc/passwd"}})", "is no name in the index's own folder"},
      {R"({"weight_map":{"a":".."}})", "is no name in the index's own folder"},
      {R"({"weight_map":{"a":""}})", "is no name in the index's own folder"},
      {R"({"weight_map":{"a":"b\u0000"}})", "is no name in the index's own folder"},
      {R"({"weight_map":{"a":"b","a":"b"}})", "'a' stands twice"},
      {R"({"weight_map":{"a":"b"},"weight_map":{"c":"b"}})", "\"weight_map\" stands twice"},
      {R"({"x":)" + std::string(1000, '[') + std::string(1000, ']') + "}", "nests deeper than 32"},
      {R"({"weight_map":{"a":"b")", "not JSON"}};
  for (const auto& [text, words] : kRows) {
    const auto read = parse_index(text, "x.index.json");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Errc::malformed);
    EXPECT_THAT(read.error().what, HasSubstr(words));
  }
}

}  // namespace
}  // namespace shard::safetensors
