// What does a process of the family print, where, and with which exit code?
#include "sim/cli/program.h"

#include <gtest/gtest.h>

#include <new>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "sim/cli/uncaught.h"

namespace shard::cli {
namespace {

struct Ended {
  int code = 0;
  std::string out, errors;
};

Ended run(const std::vector<std::string>& arguments, std::ostream* sink = nullptr) {
  Program program("shardscope", "0.1.0");
  program.add("search", [](std::span<const std::string>) { return 3; });
  std::ostringstream out;
  std::ostringstream errors;
  const int code = run_program(program, arguments, sink == nullptr ? out : *sink, errors);
  return {code, out.str(), errors.str()};
}

TEST(RunProgram, EndsAsTheCommandDoes) {
  EXPECT_EQ(run({"search"}).code, 3);
  EXPECT_EQ(run({"search"}).errors, "");
}

TEST(RunProgram, HelpGoesToTheOutputAndErrorsDoNot) {
  EXPECT_EQ(run({"--version"}).out, "shardscope 0.1.0\n");
  const Ended unknown = run({"serch"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_NE(unknown.errors.find("did you mean 'search'?"), std::string::npos);
}

TEST(RunProgram, AnExceptionThatNobodyCaughtIsAnErrorWithItsCode) {
  const auto ended = [](const shard::cli::Run& command) {
    Program program("shardscope", "0.1.0");
    program.add("search", command);
    std::ostringstream out;
    std::ostringstream errors;
    const int code = run_program(program, std::vector<std::string>{"search"}, out, errors);
    return Ended{code, out.str(), errors.str()};
  };
  const Ended memory = ended([](std::span<const std::string>) -> int { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code, 69);
  EXPECT_NE(memory.errors.find("memory is short"), std::string::npos) << memory.errors;
  const Ended fault = ended([](std::span<const std::string>) -> int { throw std::logic_error("a\x1b"); });
  EXPECT_EQ(fault.code, 70);
  EXPECT_NE(fault.errors.find("nobody expected: a\\x1b"), std::string::npos) << fault.errors;
  EXPECT_EQ(ended([](std::span<const std::string>) -> int { throw 1; }).code, 70);
}

TEST(RunProgramDeathTest, SoIsOneOfAnotherThread) {
  install_terminate_handler();
  EXPECT_EXIT(std::thread([] { throw std::bad_alloc(); }).join(), testing::ExitedWithCode(69), "memory is short");
}

TEST(RunProgram, AProgramThatIsNotThereIsUnavailable) {
  const Ended ended = run({"train"});  // no shardscope-train lies beside the test
  EXPECT_EQ(ended.code, 69);
  EXPECT_NE(ended.errors.find("which is not built"), std::string::npos);
}

TEST(RunProgram, OutputThatIsLostIsAnError) {
  std::ostringstream full;
  full.setstate(std::ios::badbit);
  EXPECT_EQ(run({"--help"}, &full).code, 74);
}

}  // namespace
}  // namespace shard::cli
