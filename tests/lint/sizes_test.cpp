// Is every file and function short enough to be one thing?
#include "tests/lint/sizes.h"

#include <gtest/gtest.h>

namespace shard::lint {
namespace {

TEST(Sizes, NoFileIsOver500LinesAndNoFunctionOver80) {
  std::vector<std::string> folders = code_folders();
  folders.push_back("tests");
  for (const SourceFile& file : files_under(folders, {".h", ".cpp", ".cu", ".cuh"}))
    for (const std::string& fault : size_faults(file)) ADD_FAILURE() << fault;
}

std::string lines(int count, const std::string& line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line + "\n";
  return text;
}

std::vector<std::string> faults_of(const std::string& text) {
  return size_faults({"x.cpp", text});
}

TEST(Sizes, AFunctionIsMeasuredFromItsNameToItsBrace) {
  const std::vector<std::string> fault{"x.cpp:2: a function of 81 lines"};
  EXPECT_EQ(faults_of("\nvoid f() {\n" + lines(78, "  g();") + "}\n"), std::vector<std::string>{});
  EXPECT_EQ(faults_of("\nvoid f() {\n" + lines(79, "  g();") + "}\n"), fault);
  EXPECT_EQ(faults_of("\nvoid f(int a,\n       int b) {\n" + lines(78, "  g();") + "}\n"), fault);
  EXPECT_EQ(faults_of("class C {\n  void f() {\n" + lines(79, "    g();") + "  }\n};\n"), fault);
  EXPECT_EQ(faults_of("\nvoid f() {\n" + lines(39, "  g();") + "\n#if X\n" + lines(38, "  g();") + "}\n"), fault);
  EXPECT_EQ(faults_of("\nconst auto f = [] {\n" + lines(79, "  g();") + "};\n"), fault);
  EXPECT_EQ(faults_of("\nvoid f() {\n  a(R\"(\n" + lines(77, "}") + ")\");\n}\n"), fault);
}

TEST(Sizes, TablesClassesAndNamespacesMayBeLong) {
  EXPECT_EQ(faults_of("const Row kRows[] = {\n" + lines(99, "    {1},") + "};\n"), std::vector<std::string>{});
  EXPECT_EQ(faults_of("class C {\n" + lines(99, "  int a;") + "};\n"), std::vector<std::string>{});
  EXPECT_EQ(faults_of("namespace a {\n" + lines(99, "int a;") + "}  // namespace a\n"), std::vector<std::string>{});
  EXPECT_EQ(faults_of(lines(500, "int a;")), std::vector<std::string>{});
  EXPECT_EQ(faults_of(lines(501, "int a;")),
            std::vector<std::string>{"x.cpp:1: has 501 lines: which second concept moved in?"});
}

}  // namespace
}  // namespace shard::lint
