// Plants bugs into plans that are right.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/compile/support.h"
#include "tests/ir/lists.h"

namespace shard::plan {

struct Planted {
  const char* name;
  const char* rule;
  Strategy strategy;
  std::function<void(PlanSet&)> plant;
  ModelPtr (*model)() = small_gpt2;
};

/// Its test is in planted_bugs_test.cpp; the bugs stand by what they are about.
class PlantedBugs : public testing::TestWithParam<Planted> {};

void PrintTo(const Planted& planted, std::ostream* out);
inline std::string name_of(const testing::TestParamInfo<Planted>& each) {
  return each.param.name;
}

/// Finds ops by name: the n-th whose name begins so.
std::size_t find_op(const PhaseOps& phase, std::string_view name, std::size_t nth = 0);
/// Changes both forms of the step in every class alike.
std::function<void(PlanSet&)> in_steps(std::function<void(Plan&, std::vector<Op>&)> change);
/// Block 0's gathered parameters are released at the first op of this name, in place of where they first are.
std::function<void(PlanSet&)> release_at(std::string name);
/// Changes the n-th op of that name in both forms of the step.
std::function<void(PlanSet&)> at_op(std::string name, std::size_t nth, std::function<void(Plan&, Op&)> change);
/// Erases an op; what it took, the next op takes, and what it gave back, the op before gives back. Its edges go.
std::function<void(PlanSet&)> drop(std::string name, std::size_t nth = 0);
/// The same in the classes that have the op.
std::function<void(PlanSet&)> drop_on_owner(std::string name, std::size_t nth = 0);
/// The op once more, right behind itself; later ids move up.
std::function<void(PlanSet&)> twice(std::string name, std::size_t nth = 0);
/// Two neighbours change places, their ids do not.
std::function<void(PlanSet&)> swap_with_next(std::string name, std::size_t nth = 0);
/// Changes how one parameter is cut, in every class.
std::function<void(PlanSet&)> cut_otherwise(std::string parameter, std::function<void(model::ParameterSplit&)> change);
/// Changes an operator, and the ops that are made of it, in every class.
std::function<void(PlanSet&)> operator_otherwise(std::string name, std::function<void(model::Attributes&)> change);
BufferId named(const Plan& plan, std::string_view name);
Communicate& call(Op& op);
Buffer& buffer_of(Plan& plan, Op& op, std::size_t operand);

}  // namespace shard::plan
