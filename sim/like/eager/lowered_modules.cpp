// The modules of a block that have modules in them, for frameworks that hook every module's call.
#include <string_view>
#include <utility>

#include "sim/like/eager/lowering.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

std::string_view LoweredDecoder::module_around(const LoweredStep& step) const {
  const model::Operator& op = step.op();
  if (op.block < 0 || op.kind == model::OperatorKind::add || !op.name.starts_with(prefix_)) return {};
  std::string_view name = std::string_view(op.name).substr(prefix_.size());
  name.remove_prefix(name.find('.') + 1);  // the block's number
  const std::size_t end = name.find('.');
  return end == std::string_view::npos ? std::string_view{} : name.substr(0, end);
}

void LoweredDecoder::open_module(const LoweredStep& step, std::string_view name, Values& values, OpenModule& open) {
  // transformers calls self_attn with names alone.
  open.module = {.name = name, .positional = name != "self_attn"};
  open.input = step.inputs[0];
  open.given = values[open.input];
  values[open.input] = r_.sharding->enter_module(open.module, open.given);
}

void LoweredDecoder::close_module(Values& values, OpenModule& open) {
  if (open.module.name.empty()) return;
  values[open.output] = r_.sharding->leave_module(open.module, std::exchange(values[open.output], {}));
  if (open.input != open.output && values[open.input]) values[open.input] = open.given;
  open = {};
}

Tensor LoweredDecoder::run_in_modules(const LoweredPart& part, const Tensor& x) {
  Values values(part.values);
  values[0] = x;
  OpenModule open;
  for (const LoweredStep& step : part.steps) {
    const std::string_view around = module_around(step);
    if (around != open.module.name) {
      close_module(values, open);
      if (!around.empty()) open_module(step, around, values, open);
    }
    run_step(step, values);
    open.output = step.output;
  }
  close_module(values, open);
  return std::move(values[part.steps.back().output]);
}

}  // namespace shard::like::eager
