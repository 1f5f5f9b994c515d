// Do our plans hold what Table 1 of the ZeRO paper says model states take on a device (arXiv:1910.02054)?
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "sim/compile/compile.h"
#include "sim/model/config.h"

namespace shard {
namespace {

/// A cell of the table: parameters in 1e9, data-parallel degree, stage (P_os: 1, P_os+g: 2, P_os+g+p: 3), GB (1e9) as
/// printed there.
struct Cell {
  double parameters;
  std::int32_t ranks;
  std::int32_t stage;
  const char* printed;
};

constexpr Cell kTable[] = {
    {7.5, 4, 1, "52.5"},    {7.5, 4, 3, "30"},      {7.5, 256, 3, "0.47"},  {7.5, 1024, 1, "30.1"},
    {7.5, 1024, 2, "15.1"}, {7.5, 1024, 3, "0.12"}, {128, 1, 2, "2048"},    {128, 16, 1, "608"},
    {128, 16, 2, "368"},    {128, 16, 3, "128"},    {128, 64, 1, "536"},    {128, 64, 2, "284"},
    {128, 256, 2, "263"},   {1000, 16, 1, "4750"},  {1000, 16, 2, "2875"},  {1000, 16, 3, "1000"},
    {1000, 64, 3, "250"},   {1000, 256, 1, "4046"}, {1000, 256, 2, "2054"}, {1000, 1024, 3, "15.6"},
};

/// GPT-2s of about that many parameters; figures are taken per parameter.
std::shared_ptr<const model::Model> model_of(double parameters) {
  const std::string shape = parameters < 10    ? R"("n_layer": 37, "n_embd": 4096, "n_head": 32)"
                            : parameters < 500 ? R"("n_layer": 100, "n_embd": 10240, "n_head": 80)"
                                               : R"("n_layer": 128, "n_embd": 25600, "n_head": 160)";
  Result<model::ConfiguredModel> parsed = model::parse_config(
      R"({"model_type": "gpt2", "vocab_size": 51200, "n_positions": 1024, )" + shape + "}", "model", "config.json");
  if (!parsed) {
    ADD_FAILURE() << to_string(parsed.error());
    return nullptr;
  }
  return std::make_shared<const model::Model>(std::move(parsed->model));
}

/// Of the printed number's last digit.
double unit_of(const std::string& printed) {
  const std::size_t point = printed.find('.');
  return point == std::string::npos ? 1 : std::pow(10.0, -static_cast<double>(printed.size() - point - 1));
}

/// What a rank holds of parameters, gradients and optimizer states when a steady step's first optimizer op begins.
Bytes states_before_step(const plan::Plan& plan) {
  Bytes states{0};
  const auto count = [&](const plan::Buffer& buffer, std::int64_t sign) {
    if (buffer.memory != Memory::device) return;
    if (buffer.category == Category::parameter || buffer.category == Category::gradient ||
        buffer.category == Category::master_parameter || buffer.category == Category::optimizer_state)
      states += Bytes{sign * buffer.bytes.count()};
  };
  for (const plan::PhaseOps& phase : plan.phases)
    for (const plan::Op& op : phase.ops) {
      if (phase.phase == Phase::steady_step && op.part == Part::optimizer) return states;
      for (const BufferId id : op.acquire) count(plan.buffer(id), 1);
      for (const BufferId id : op.release) count(plan.buffer(id), -1);
    }
  ADD_FAILURE() << "no step";
  return states;
}

class ZeroPaperTable1 : public ::testing::TestWithParam<Cell> {};

TEST_P(ZeroPaperTable1, StatesBeforeTheStep) {
  const Cell cell = GetParam();
  const auto model = model_of(cell.parameters);
  plan::Strategy s;
  s.world_size = cell.ranks;
  s.stage = cell.ranks == 1 ? 0 : cell.stage;  // one rank has nothing to share
  s.precision = plan::Precision::fp16;
  s.device = plan::Device::cuda;
  s.optimizer = plan::OptimizerKind::adam;
  s.micro_batch = 1;
  s.global_batch = s.world_size;
  s.sequence = 64;
  s.reproducible = false;
  const Result<plan::PlanSet> plans = plan::compile(model, s);
  ASSERT_TRUE(plans) << to_string(plans.error());
  const Bytes states = states_before_step(plans->classes.front());
  std::int64_t elements = 0;
  for (const auto& parameter : model->parameters) elements += parameter.elems.count();
  const double each = static_cast<double>(states.count()) / static_cast<double>(elements);
  EXPECT_NEAR(each * cell.parameters, std::stod(cell.printed), unit_of(cell.printed));
}

INSTANTIATE_TEST_SUITE_P(Cells, ZeroPaperTable1, ::testing::ValuesIn(kTable), [](const auto& cell) {
  return std::to_string(static_cast<int>(cell.param.parameters)) + "BillionOn" + std::to_string(cell.param.ranks) +
         "Stage" + std::to_string(cell.param.stage);
});

}  // namespace
}  // namespace shard
