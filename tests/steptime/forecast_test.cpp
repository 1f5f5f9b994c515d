// Is a step as long as its pieces, where one can count them by hand?
#include "profiler/steptime/forecast.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "profiler/steptime/host_time.h"
#include "profiler/steptime/virtual_time.h"
#include "sim/cluster/read_cluster.h"
#include "sim/cost/laws/exchange.h"
#include "sim/cost/laws/product.h"
#include "sim/price/price.h"

namespace shard::steptime {
namespace {

using ::testing::HasSubstr;

constexpr int kStreamOfExchanges = 9;

/// Work of one thread, a line each.
class Lines {
 public:
  Lines& product(int size, int stream = 0, int capture = 0) {
    const std::string s = std::to_string(size);
    return add('p', stream, capture, s + "\t" + s + "\t" + s + "\t1\t14\t14\t14\t68\tcublasGemmEx");
  }
  Lines& kernel(const std::string& name, int capture = 0) {
    return add('k', 0, capture, "100\t1\t1\t128\t1\t1\t" + name);
  }
  Lines& all_gather(std::int64_t bytes, int ranks) {
    return add(
        'c', kStreamOfExchanges, 0,
        "4\t" + std::to_string(bytes) + "\t77\t" + std::to_string(ranks) + "\t0\t-1\t" + std::to_string(++group_));
  }
  Lines& record(int event, int stream) { return add('r', stream, 0, std::to_string(event)); }
  Lines& wait(int event, int stream) { return add('w', stream, 0, std::to_string(event)); }
  Lines& graph(int executable) { return add('g', 0, 0, std::to_string(executable)); }
  Lines& instance(int executable, int capture) {
    return add('i', 0, 0, std::to_string(executable) + "\t" + std::to_string(capture));
  }
  Lines& host_waits() { return add('h', 0, 0, "0\t0"); }
  Lines& step() { return add('s', 0, 0, std::to_string(++steps_)); }
  [[nodiscard]] WorkList list() const { return *parse_work(text_, "test"); }

 private:
  Lines& add(char kind, int stream, int capture, const std::string& rest) {
    text_ += std::string(1, kind) + "\t" + std::to_string(time_ += 10) + "\t1\t" + std::to_string(capture) + "\t" +
             std::to_string(stream) + "\t" + rest + "\n";
    return *this;
  }

  std::string text_ = std::string(standin::kWorkHeader) + "\n";
  std::int64_t time_ = 0, steps_ = 0, group_ = 0;
};

class ForecastOf : public ::testing::Test {
 protected:
  ForecastOf() : card_(*cluster::read_cluster("a100-80gb-x8")) {}

  Forecast of(const Lines& lines, std::int64_t world_size = 1) {
    const Result<Forecast> made = forecast(lines.list(), {}, {.cluster = &card_, .world_size = world_size});
    EXPECT_TRUE(made) << made.error().what;
    return made ? *made : Forecast{};
  }
  double product(int size) {
    return cost::product_time({.m = size, .n = size, .k = size}, card_.kernel_laws->sustained(), card_).count() +
           price::kColdOperands.count() + kBetweenKernels;
  }
  static double part(const Forecast& forecast, const std::string& name) {
    for (const Part& each : forecast.parts)
      if (each.name == name) return each.time.count();
    return 0;
  }

  cluster::Cluster card_;
};

TEST_F(ForecastOf, StepOfLargeProductsIsTheirSum) {
  const Forecast f = of(Lines().product(4096).product(8192).step().product(4096).product(8192).step());
  EXPECT_NEAR(f.seconds.count(), product(4096) + product(8192), 1e-9);
  EXPECT_EQ(f.step, 2);
  EXPECT_EQ(f.kernels, 2);
  EXPECT_DOUBLE_EQ(f.coverage, 1);
  EXPECT_NEAR(part(f, "products"), f.seconds.count(), 1e-9);
  EXPECT_LT(f.low, f.seconds);
  EXPECT_GT(f.high, f.seconds);
}

TEST_F(ForecastOf, LastWholeStepCountsAndWhatFollowsDoesNot) {
  const Forecast f = of(Lines().product(512).step().product(4096).step().product(8192).product(8192));
  EXPECT_EQ(f.step, 2);
  EXPECT_NEAR(f.seconds.count(), product(4096), 1e-9);
}

TEST_F(ForecastOf, RunWithoutStepsIsAllOfIt) {
  const Forecast f = of(Lines().product(4096).product(4096));
  EXPECT_EQ(f.step, 0);
  EXPECT_NEAR(part(f, "products"), 2 * product(4096), 1e-9);
}

TEST_F(ForecastOf, HostThatWaitsEachTimeIsSeen) {
  Lines a, b;
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < 50; ++i) a.product(2048), b.product(2048).host_waits();
    a.step(), b.step();
  }
  EXPECT_GT(of(b).seconds.count(), of(a).seconds.count() + 50 * VirtualTime::kLaunch);
  EXPECT_GT(part(of(b), "waiting for the host"), 0);
}

TEST_F(ForecastOf, KernelsWithoutALawAreNamedAndWidenTheInterval) {
  const Forecast known = of(Lines().product(4096).step().product(4096).step());
  const Forecast f =
      of(Lines().product(4096).step().product(4096).kernel("mine").kernel("mine").kernel("other").step());
  ASSERT_EQ(f.not_known.size(), 2u);
  EXPECT_EQ(f.not_known[0].name, "mine");
  EXPECT_EQ(f.not_known[0].kernels, 2);
  EXPECT_GT(f.not_known[0].assumed.count(), 0) << "never zero";
  EXPECT_LT(f.coverage, 1);
  EXPECT_GT(f.coverage, 0.9);
  EXPECT_LT(f.low.count() / f.seconds.count(), known.low.count() / known.seconds.count());
  EXPECT_GT(f.high.count() / f.seconds.count(), known.high.count() / known.seconds.count());
}

TEST_F(ForecastOf, ExchangeBesideComputingIsHiddenAndOneThatIsWaitedForIsNot) {
  const std::int64_t bytes = std::int64_t{1} << 28;
  const double gather =
      cost::exchange_time(Collective::all_gather, static_cast<double>(bytes), {.ranks = 8}, card_).count();
  ASSERT_LT(gather, product(8192));
  const Forecast hidden = of(Lines().product(8192).step().all_gather(bytes, 8).product(8192).step());
  EXPECT_EQ(hidden.exchanges, 1);
  EXPECT_LT(part(hidden, "exposed communication"), 0.1 * gather);
  const Lines waits = Lines()
                          .product(8192)
                          .step()
                          .record(2, 0)
                          .wait(2, kStreamOfExchanges)
                          .all_gather(bytes, 8)
                          .record(1, kStreamOfExchanges)
                          .wait(1, 0)
                          .product(8192)
                          .step();
  const Forecast exposed = of(waits);
  EXPECT_NEAR(part(exposed, "exposed communication"), gather, 0.1 * gather);
  EXPECT_NEAR(exposed.seconds.count(), product(8192) + gather, 0.1 * gather);
}

TEST_F(ForecastOf, SlowestOfManyRanksIsAStatedTerm) {
  const Lines lines = Lines().product(8192).step().product(8192).step();
  const Forecast one = of(lines), many = of(lines, 64);
  EXPECT_NEAR(part(many, "waiting for the slowest rank"), one.seconds.count() * 0.03 * std::sqrt(2 * std::log(64.0)),
              1e-9);
  EXPECT_NEAR(many.seconds.count(), one.seconds.count() + part(many, "waiting for the slowest rank"), 1e-9);
}

TEST_F(ForecastOf, GraphRunsWhatWasCapturedEachTimeThatItIsLaunched) {
  const Lines lines = Lines()
                          .product(4096, 3, 1)
                          .product(2048, 3, 1)
                          .instance(50, 1)
                          .step()
                          .graph(50)
                          .graph(50)
                          .step()
                          .graph(99)
                          .product(64);
  const Forecast f = of(lines);
  EXPECT_EQ(f.kernels, 4);
  EXPECT_NEAR(part(f, "products"), 2 * (product(4096) + product(2048)), 1e-5);
}

TEST_F(ForecastOf, PartsAreTheStep) {
  Lines lines;
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < 20; ++i)
      lines.product(1024).all_gather(1 << 24, 8).kernel("mine").record(i, kStreamOfExchanges).wait(i, 0);
    lines.host_waits().step();
  }
  const Forecast f = of(lines, 8);
  double sum = 0;
  for (const Part& each : f.parts) sum += each.time.count();
  EXPECT_NEAR(sum, f.seconds.count(), 1e-9);
  for (const Shown& each : f.shown) {
    EXPECT_LE(each.issued, each.begin);
    EXPECT_LE(each.begin, each.end);
    EXPECT_LE(each.end.count(), f.seconds.count() + 1e-9);
  }
}

TEST_F(ForecastOf, OperatorsAreThoseOfTheStepAndLaunch) {
  import::KinetoProgram program;
  import::KinetoOperator add;
  add.name = "aten::add";
  add.begin_ns = 15, add.end_ns = 35, add.thread = 1;
  for (int i = 0; i < 2; ++i)
    add.inputs.push_back({.sizes = {1024, 1024}, .strides = {}, .type = "float", .argument = i});
  program.operators = {add};
  const WorkList work = Lines().product(64).kernel("elementwise_kernel").step().product(64).step().list();
  const Result<Forecast> made = forecast(work, program, {.cluster = &card_, .world_size = 1});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->step, 1) << "whose operators are known";
  EXPECT_GT(part(*made, "elementwise"), 0);
  bool found = false;
  for (const Shown& each : made->shown) found = found || each.op == "aten::add";
  EXPECT_TRUE(found);
}

TEST_F(ForecastOf, OperatorsOfAnEarlierStepAreThoseOfWhatItCaptured) {
  import::KinetoProgram program;
  import::KinetoOperator add;
  add.name = "aten::add";
  add.begin_ns = 15, add.end_ns = 35, add.thread = 1;
  for (int i = 0; i < 2; ++i)
    add.inputs.push_back({.sizes = {1 << 12, 1 << 12}, .strides = {}, .type = "float", .argument = i});
  program.operators = {add};
  const WorkList work = Lines()
                            .product(64)
                            .kernel("elementwise_kernel", 1)
                            .instance(50, 1)
                            .step()
                            .graph(50)
                            .step()
                            .graph(50)
                            .step()
                            .list();
  const Result<Forecast> made = forecast(work, program, {.cluster = &card_, .world_size = 1, .step = 3});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->step, 3);
  EXPECT_DOUBLE_EQ(made->coverage, 1);
  EXPECT_TRUE(std::ranges::any_of(made->shown, [](const Shown& each) { return each.op == "aten::add"; }));
}

TEST_F(ForecastOf, NothingGivenIsNoTime) {
  const Result<Forecast> none = forecast(Lines().step().list(), {}, {.cluster = &card_, .world_size = 1});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().what, HasSubstr("nothing"));
}

}  // namespace
}  // namespace shard::steptime
