// Are the rates of torch's schedulers torch's, and is what torch refuses refused?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "executor/rates/torch_schedule.h"

namespace shard::rates {
namespace {

using testing::HasSubstr;

struct Recorded {
  std::string call;
  std::vector<double> rates;
};

/// Of torch's own code, by tests/data/schedules/torch_rates.py, with a rate of 1e-3.
std::vector<Recorded> recorded() {
  std::vector<Recorded> all;
  std::ifstream file(TEST_DATA "/data/schedules/torch_rates.tsv");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Recorded one;
    std::getline(words, one.call, '\t');
    for (std::string word; std::getline(words, word, '\t');) one.rates.push_back(std::stod(word));
    all.push_back(std::move(one));
  }
  return all;
}

TEST(TorchSchedule, HasTorchsRates) {
  const std::vector<Recorded> all = recorded();
  ASSERT_EQ(all.size(), 100U);
  for (const Recorded& each : all) {
    const auto schedule = TorchSchedule::read(each.call, "test");
    ASSERT_TRUE(schedule) << to_string(schedule.error());
    ASSERT_EQ(each.rates.size(), 60U);
    // torch multiplies its way from rate to rate; what that loses near 0 is of the rate it began with.
    for (std::size_t step = 0; step < each.rates.size(); ++step)
      ASSERT_NEAR(schedule->at(1e-3, static_cast<std::int64_t>(step)), each.rates[step],
                  1e-12 * each.rates[step] + 1e-17)
          << each.call << " at " << step;
  }
}

TEST(TorchSchedule, ReadsItsOwnText) {
  for (const Recorded& each : recorded()) {
    const auto schedule = TorchSchedule::read(each.call, "test");
    ASSERT_TRUE(schedule);
    const auto again = TorchSchedule::read(schedule->text(), "test");
    ASSERT_TRUE(again) << schedule->text() << ": " << to_string(again.error());
    EXPECT_EQ(again->text(), schedule->text());
    for (std::int64_t step = 0; step < 60; ++step) EXPECT_EQ(again->at(1e-3, step), schedule->at(1e-3, step));
  }
}

TEST(TorchSchedule, TakesWhatProgramsWrite) {
  for (const char* const text :
       {"torch.optim.lr_scheduler.StepLR(step_size=30, gamma=0.1, last_epoch=-1)",
        "lr_scheduler.CosineAnnealingLR(T_max=1_000,\n  eta_min=1e-5)", "ExponentialLR(0.9, verbose=True)"})
    EXPECT_TRUE(TorchSchedule::read(text, "test")) << text;
}

struct Refused {
  std::string text;
  std::string said;
};

TEST(TorchSchedule, RefusesByName) {
  for (const Refused& each : std::vector<Refused>{
           {"LambdaLR(lambda step: 1)", ""},
           {"ReduceLROnPlateau()", "ReduceLROnPlateau"},
           {"CosineAnnealingLR()", "T_max is not given"},
           {"CosineAnnealingLR(T_max=0)", "T_max is not a whole number"},
           {"CosineAnnealingLR(T_max=1.5)", "T_max is not a whole number"},
           {"CosineAnnealingLR(10, 0, -1, 4, 5)", "at most"},
           {"CosineAnnealingLR(T_max=10, eta=0)", "no parameter eta"},
           {"CosineAnnealingLR(10, T_max=10)", "T_max twice"},
           {"LinearLR(start_factor=0)", "start_factor"},
           {"LinearLR(end_factor=2)", "end_factor"},
           {"MultiStepLR([3, 2])", "rise"},
           {"MultiStepLR(3)", "milestones"},
           {"StepLR(step_size='a')", "step_size"},
           {"StepLR(1, gamma=1e999)", "gamma"},
           {"OneCycleLR(0.1, 60)", "cycle_momentum=False"},
           {"OneCycleLR(0.1, 60, cycle_momentum=True)", "cycle_momentum"},
           {"OneCycleLR(0.1, epochs=3, steps_per_epoch=20, cycle_momentum=False)", "total_steps"},
           {"SequentialLR([StepLR(1)], milestones=[3])", "1 schedulers and 1 milestones"},
           {"SequentialLR([StepLR(1), SequentialLR([StepLR(1)], [])], milestones=[3])", "within SequentialLR"},
           {"SequentialLR([StepLR(1), 3], milestones=[3])", "no call"},
           {"StepLR(1); StepLR(2)", ""},
           {"StepLR(1) StepLR(2)", "follows"},
           {"StepLR(1", ""},
           {"StepLR", ""},
           {"", ""},
           {"3", "no call"}}) {
    const auto schedule = TorchSchedule::read(each.text, "--torch-scheduler");
    ASSERT_FALSE(schedule) << each.text;
    EXPECT_THAT(to_string(schedule.error()), HasSubstr(each.said)) << each.text;
    EXPECT_THAT(to_string(schedule.error()), HasSubstr("--torch-scheduler")) << each.text;
  }
}

}  // namespace
}  // namespace shard::rates
