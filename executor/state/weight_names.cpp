// Names as Hugging Face's classes register them, which are the model's own; what checkpoints have beside them.
#include "executor/state/weight_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sim/model/family.h"

namespace shard {
namespace {

using safetensors::in_quotes;
using safetensors::shape_text;
using safetensors::Tensor;

constexpr std::size_t kNamed = 3;  ///< of those that are missing or left over

/// Constants that some versions of transformers saved beside parameters, and none of them reads:
/// _keys_to_ignore_on_load_unexpected of its classes.
bool is_constant(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kEnds{".attn.bias",           ".attn.masked_bias",
                                                         ".attention.bias",      ".attention.masked_bias",
                                                         ".rotary_emb.inv_freq", ".position_ids"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

std::span<const std::int64_t> whole_shape(const model::Model& model, std::size_t p) {
  return model.split.degree > 1 ? model.split.parameters[p].whole : model.parameters[p].shape;
}

/// The head that shares the embedding's weight: its tensor's name, and the parameter's.
struct TiedHead {
  std::string tensor;
  std::string parameter;
};

std::optional<TiedHead> tied_head(const model::Model& model) {
  if (!model.tied_embeddings || !model.described) return std::nullopt;
  for (const model::TableRow& row : model.described->table->operators)
    if (row.arguments.size() > 3 && row.arguments[0] == "head")
      return TiedHead{std::string(row.arguments[1]) + ".weight", std::string(row.arguments[3])};
  return std::nullopt;
}

/// The first component of the first parameter's name, with its dot: what a base model's checkpoint leaves out.
std::string class_prefix(const model::Model& model) {
  if (model.class_name.empty()) return {};
  const std::string& name = model.parameters.front().name;
  return name.substr(0, name.find('.') + 1);
}

Error does_not_match(std::string what, std::string where, std::string help) {
  return {Errc::contradiction, std::move(what), std::move(where), std::move(help)};
}

/// Finds every tensor's parameter, then looks at each parameter in order.
class WeightFinder {
 public:
  WeightFinder(const model::Model& model, const std::string& where)
      : model_(model), where_(where), prefix_(class_prefix(model)), head_(tied_head(model)) {
    for (std::size_t p = 0; p < model.parameters.size(); ++p) number_[model.parameters[p].name] = p;
    found_.of_parameter.resize(model.parameters.size());
  }

  Result<void> add(const TensorFile& file, const Tensor& tensor) {
    const FoundTensor here{&file, &tensor};
    std::optional<std::size_t> p = parameter(tensor.name);
    if (!p && !prefix_.empty()) {
      p = parameter(prefix_ + tensor.name);
      if (p) without_prefix_ = true;
    }
    if (!p && head_ && tensor.name == head_->tensor) return head_tensor_ = here, Result<void>();
    if (!p) {
      if (is_constant(tensor.name))
        ++constants_;
      else
        surplus_.push_back(in_quotes(tensor.name) + " (" + shape_text(tensor.shape) + ")");
      return {};
    }
    FoundTensor& there = found_.of_parameter[*p];
    if (there.tensor != nullptr)
      return Error{Errc::malformed,
                   "tensors " + in_quotes(there.tensor->name) + " and " + in_quotes(tensor.name) +
                       " are both parameter " + in_quotes(model_.parameters[*p].name) + " of " + model_.name,
                   file.path().string(), "a file with one of them"};
    there = here;
    return {};
  }

  Result<FoundWeights> finish() && {
    settle_head();
    for (std::size_t p = 0; p < model_.parameters.size(); ++p)
      if (found_.of_parameter[p].tensor == nullptr)
        missing_.push_back(in_quotes(model_.parameters[p].name) + " (" + shape_text(whole_shape(model_, p)) + ")");
    // Of another family nothing but a head may have a name of ours, and its shape would say nothing.
    if (missing_.size() + 1 >= model_.parameters.size() && !missing_.empty()) return absent();
    for (std::size_t p = 0; p < model_.parameters.size(); ++p) {
      if (found_.of_parameter[p].tensor == nullptr) return absent();
      if (Result<void> fits = check(p); !fits) return fits.error();
    }
    if (!surplus_.empty())
      return does_not_match(some(surplus_) +
                                (surplus_.size() == 1 ? " is no parameter of " : " are no parameters of ") +
                                model_.name + ", which has " + std::to_string(model_.parameters.size()),
                            where_, "the config.json of these weights as --model");
    if (without_prefix_) found_.notes.push_back("weights of the base model: its names lack " + in_quotes(prefix_));
    if (constants_ > 0)
      found_.notes.push_back(std::to_string(constants_) +
                             " tensors of weights are constants (masks, positions), and passed over");
    return std::move(found_);
  }

 private:
  std::optional<std::size_t> parameter(const std::string& name) const {
    const auto found = number_.find(name);
    return found == number_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Tied: the embedding's tensor counts, the head's only where there is no other.
  void settle_head() {
    if (head_tensor_.tensor == nullptr) return;
    const std::optional<std::size_t> p = parameter(head_->parameter);
    if (!p) return;
    FoundTensor& shared = found_.of_parameter[*p];
    const bool both = shared.tensor != nullptr;
    if (!both) shared = head_tensor_;
    found_.notes.push_back(head_->tensor + " and " + head_->parameter + " are one parameter: " +
                           (both ? head_->parameter + "'s tensor is taken" : head_->tensor + "'s is the only tensor"));
  }

  static std::string some(const std::vector<std::string>& names) {
    std::string text = names.size() == 1 ? "tensor " : std::to_string(names.size()) + " tensors, ";
    for (std::size_t i = 0; i < std::min(kNamed, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
    return text + (names.size() > kNamed ? ", ...," : "");
  }

  /// Something is missing.
  Error absent() const {
    std::string what = (missing_.size() == 1 ? "no tensor is for parameter "
                                             : "no tensors are for " + std::to_string(missing_.size()) +
                                                   " parameters of " + std::to_string(model_.parameters.size()) + ", ");
    for (std::size_t i = 0; i < std::min(kNamed, missing_.size()); ++i) what += (i == 0 ? "" : ", ") + missing_[i];
    what += (missing_.size() > kNamed ? ", ..., of " : " of ") + model_.name;
    if (!surplus_.empty()) what += "; " + some(surplus_) + (surplus_.size() == 1 ? " is no parameter" : " are none");
    const bool head = missing_.size() == 1 && missing_.front().starts_with("'lm_head.weight'");
    return does_not_match(
        what, where_,
        head ? "\"tie_word_embeddings\": true in config.json if the head is the embedding, or weights with a head"
             : "the config.json of these weights as --model, and all files of the checkpoint");
  }

  Result<void> check(std::size_t p) const {
    const FoundTensor& at = found_.of_parameter[p];
    const std::span<const std::int64_t> expected = whole_shape(model_, p);
    const Tensor& t = *at.tensor;
    const std::string named = "parameter " + in_quotes(model_.parameters[p].name) + " of " + model_.name;
    if (!std::ranges::equal(expected, t.shape))
      return does_not_match(
          named + " is " + shape_text(expected) + "; tensor " + in_quotes(t.name) + " is " + shape_text(t.shape),
          at.file->path().string(), "the config.json of these weights as --model");
    if (t.dtype != "F32" && t.dtype != "F16" && t.dtype != "BF16")
      return does_not_match("tensor " + in_quotes(t.name) + " is " + t.dtype + ", which " + named +
                                " cannot begin with: F32, F16 and BF16 are read",
                            at.file->path().string(), "model.to(torch.float32).save_pretrained(folder)");
    return {};
  }

  const model::Model& model_;
  const std::string& where_;
  std::string prefix_;
  std::optional<TiedHead> head_;
  std::unordered_map<std::string, std::size_t> number_;
  FoundWeights found_;
  FoundTensor head_tensor_;
  bool without_prefix_ = false;
  std::size_t constants_ = 0;
  std::vector<std::string> surplus_;
  std::vector<std::string> missing_;
};

}  // namespace

Result<FoundWeights> find_weights(std::span<const TensorFile> files, const model::Model& model,
                                  const std::string& where) {
  WeightFinder finder(model, where);
  for (const TensorFile& file : files)
    for (const Tensor& tensor : file.tensors())
      if (Result<void> added = finder.add(file, tensor); !added) return added.error();
  return std::move(finder).finish();
}

}  // namespace shard
