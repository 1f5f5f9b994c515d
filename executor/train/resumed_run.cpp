// Finds the tensors that a run needs, and reads stretches of them.
#include "executor/train/resumed_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "executor/state/checkpoint/directory.h"
#include "executor/state/stored_floats.h"
#include "sim/ir/scaler.h"

namespace shard::train {
namespace {

const std::string* value_of(const std::vector<checkpoint::Fact>& facts, std::string_view name) {
  const auto found = std::ranges::find(facts, name, &checkpoint::Fact::name);
  return found == facts.end() ? nullptr : &found->value;
}

}  // namespace

std::vector<std::string> differences(const std::vector<checkpoint::Fact>& saved,
                                     const std::vector<checkpoint::Fact>& now) {
  std::vector<std::string> words;
  for (const auto& [name, value] : now) {
    const std::string* const before = value_of(saved, name);
    if (before == nullptr || *before != value)
      words.push_back(name + ' ' + (before == nullptr ? "not said" : *before) + ", now " + value);
  }
  for (const auto& [name, value] : saved)
    if (value_of(now, name) == nullptr) words.push_back(name + ' ' + value + ", now none");
  return words;
}

Result<std::shared_ptr<const ResumedRun>> ResumedRun::open(const std::filesystem::path& folder,
                                                           const model::Model& model, const plan::Strategy& strategy,
                                                           bool inexact) {
  const Result<std::filesystem::path> path = checkpoint::newest(folder);
  if (!path) return path.error();
  Result<checkpoint::Reader> reader = checkpoint::Reader::open(*path);
  if (!reader) return reader.error();
  const std::shared_ptr<ResumedRun> run(new ResumedRun(std::move(*reader)));
  if (Result<void> found = run->find_tensors(checkpoint_tensors(model, strategy), inexact); !found)
    return found.error();
  return std::shared_ptr<const ResumedRun>(run);
}

Result<void> ResumedRun::find_tensors(const CheckpointTensors& wanted, bool inexact) {
  Result<void> outcome;
  const auto find = [&](const checkpoint::TensorSpec& spec, bool needed, bool any_type) -> std::int32_t {
    const std::optional<std::int32_t> number = reader_.find(spec.name);
    if (!number) {
      if (outcome && needed)
        outcome = Error{Errc::contradiction, "has no tensor " + safetensors::in_quotes(spec.name), path().string(),
                        inexact ? "a checkpoint of this model"
                                : "a checkpoint of this model; --resume-inexact where "
                                  "only optimizer state is missing, which then begins anew"};
      return -1;
    }
    const safetensors::Tensor& tensor = reader_.tensor(*number);
    if (outcome && (tensor.shape != spec.shape || (!any_type && tensor.dtype != spec.dtype)))
      outcome = Error{Errc::contradiction,
                      "tensor " + safetensors::in_quotes(spec.name) + " is " + tensor.dtype + ' ' +
                          safetensors::shape_text(tensor.shape) + "; the model has " + spec.dtype + ' ' +
                          safetensors::shape_text(spec.shape),
                      path().string(), "the model and the options that the checkpoint was saved with"};
    return *number;
  };
  const std::size_t weights = wanted.weights.size();
  for (const checkpoint::TensorSpec& spec : wanted.weights) tensors_.value.push_back(find(spec, true, inexact));
  const auto state = [&](std::int32_t number) {
    return number < 0 ? -1 : find(wanted.state[static_cast<std::size_t>(number) - weights], !inexact, false);
  };
  for (std::size_t k = 0; k < 2; ++k)
    for (const std::int32_t number : wanted.moment[k]) tensors_.moment[k].push_back(state(number));
  for (const std::int32_t number : wanted.count) tensors_.count.push_back(state(number));
  if (wanted.scaler >= 0) tensors_.scaler = state(wanted.scaler);
  return outcome;
}

Result<void> ResumedRun::values(model::ParamId param, std::int64_t first, std::span<float> values) const {
  const std::int32_t number = tensors_.value[static_cast<std::size_t>(param.value)];
  return read_floats(reader_.tensor(number).dtype, first, values,
                     [&](std::int64_t byte, std::span<std::byte> into) { return reader_.read(number, byte, into); });
}

Result<void> ResumedRun::state(model::ParamId param, plan::StateContent content, std::int64_t first,
                               std::span<std::byte> elements) const {
  using plan::StateContent;
  const auto read = [&](std::int32_t number, std::int64_t offset, std::span<std::byte> into) -> Result<void> {
    if (number >= 0) return reader_.read(number, offset, into);
    std::ranges::fill(into, std::byte{});
    return {};
  };
  constexpr std::size_t kSize = sizeof(std::int32_t);
  switch (content) {
    case StateContent::first_moment:
    case StateContent::second_moment: {
      const std::size_t which = content == StateContent::first_moment ? 0 : 1;
      return read(tensors_.moment[which][static_cast<std::size_t>(param.value)],
                  first * static_cast<std::int64_t>(sizeof(float)), elements);
    }
    case StateContent::step_counts:
      for (std::size_t i = 0; i < elements.size() / kSize; ++i)
        if (Result<void> r = read(tensors_.count[static_cast<std::size_t>(first) / kSize + i], 0,
                                  elements.subspan(i * kSize, kSize));
            !r)
          return r;
      return {};
    case StateContent::loss_scaler:
      for (std::int32_t i = 0; i < 3; ++i)
        if (Result<void> r = read(tensors_.scaler < 0 ? -1 : tensors_.scaler + i, 0,
                                  elements.subspan(static_cast<std::size_t>(i) * kSize, kSize));
            !r)
          return r;
      return {};
    case StateContent::parameter:
    case StateContent::master: break;
  }
  return {};
}

void ResumedRun::tell(SessionOptions& session) const {
  session.first_step = manifest().step;
  session.first_values = [this](model::ParamId param, std::int64_t first, std::span<float> into) {
    return values(param, first, into);
  };
  session.first_state = [this](model::ParamId param, plan::StateContent content, std::int64_t first,
                               std::span<std::byte> into) { return state(param, content, first, into); };
}

}  // namespace shard::train
