// Are parameter lists read as written, and is everything else refused with the place of the fault?
#include "sim/model/parameters.h"

#include <gtest/gtest.h>

namespace shard {
namespace {

struct Fault {
  const char* json;
  const char* where;
};

class MalformedParameters : public ::testing::TestWithParam<Fault> {};

TEST_P(MalformedParameters, AreRefusedWithTheirPlace) {
  const Result<ParameterList> list = parse_parameter_list(GetParam().json, "list.json");
  ASSERT_FALSE(list) << GetParam().json;
  EXPECT_EQ(list.error().code, Errc::malformed);
  EXPECT_EQ(list.error().where, GetParam().where) << to_string(list.error());
}

INSTANTIATE_TEST_SUITE_P(
    Faults, MalformedParameters,
    ::testing::Values(
        Fault{"", "list.json"}, Fault{"[{\"name\":", "list.json"}, Fault{"{}", "list.json"}, Fault{"[]", "list.json"},
        Fault{"[3]", "list.json#/0"}, Fault{R"([{"shape":[2]}])", "list.json#/0/name"},
        Fault{R"([{"name":"","shape":[2]}])", "list.json#/0/name"},
        Fault{R"([{"name":7,"shape":[2]}])", "list.json#/0/name"}, Fault{R"([{"name":"a"}])", "list.json#/0/shape"},
        Fault{R"([{"name":"a","shape":[2,-3]}])", "list.json#/0/shape/1"},
        Fault{R"([{"name":"a","shape":[0]}])", "list.json#/0/shape/0"},
        Fault{R"([{"name":"a","shape":[2.0]}])", "list.json#/0/shape/0"},
        Fault{R"([{"name":"a","shape":["2"]}])", "list.json#/0/shape/0"},
        Fault{R"([{"name":"a","shape":[[[[2]]]]}])", "list.json#/0/shape/0"},
        Fault{R"([{"name":"a","shape":[4294967296,4294967296]}])", "list.json#/0/shape"},
        Fault{R"([{"name":"a","shape":[99999999999999999999]}])", "list.json#/0/shape/0"},
        Fault{R"([{"name":"a","shape":[2,3],"numel":5}])", "list.json#/0/numel"},
        Fault{R"([{"name":"a","shape":[2]},{"name":"a","shape":[2]}])", "list.json#/1/name"},
        Fault{R"([{"name":"a","shape":[1073741824,1073741824]},{"name":"b","shape":[1]}])", "list.json#/1"}));

TEST(Parameters, ReadsNamesShapesAndSizesInOrder) {
  const Result<ParameterList> list =
      parse_parameter_list(R"([{"name":"b.w","shape":[2,3],"numel":6},{"name":"a","shape":[]}])", "list.json");
  ASSERT_TRUE(list) << to_string(list.error());
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0].name, "b.w");
  EXPECT_EQ((*list)[0].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ((*list)[0].elems, Elems{6});
  EXPECT_EQ((*list)[1].elems, Elems{1});  // a scalar
  EXPECT_EQ(total_elems(*list), Elems{7});
}

TEST(Parameters, DeepNestingDoesNotExhaustTheStack) {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_FALSE(parse_parameter_list(deep, "deep"));
  EXPECT_FALSE(parse_parameter_list(R"([{"name":"a","shape":[)" + deep + R"(]}])", "deep"));
}

TEST(Parameters, AnAbsentFileOrAFolderIsNoInput) {
  for (const char* path : {"/nonexistent/list.json", TEST_DATA}) {
    const Result<ParameterList> list = read_parameter_list(path);
    ASSERT_FALSE(list);
    EXPECT_EQ(list.error().code, Errc::no_input);
  }
}

TEST(Parameters, AModuleIsANameWithoutItsLastComponent) {
  EXPECT_EQ(module_name("h.0.ln_1.weight"), "h.0.ln_1");
  EXPECT_EQ(module_name("weight"), "");
}

}  // namespace
}  // namespace shard
