// What Megatron-LM's decoders have in common: modules' names, and a family's parameters as ranks have them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/like/eager/lowering.h"
#include "sim/like/eager/megatron.h"

namespace shard::like::eager {

/// What ranks cut of a weight, (out, in) as it is.
enum class Cut : std::uint8_t {
  none,
  columns,  ///< as ColumnParallelLinear: each has some of the outputs, or words
  rows,     ///< as RowParallelLinear: some of the inputs
};

/// A weight of a layer, with its bias if there is one.
struct MegatronRow {
  std::string_view name;  ///< behind "decoder.layers.N."
  Cut cut = Cut::none;
  std::array<std::string_view, 3> of{};  ///< operators of the family's table whose weights it has, one behind another
};

constexpr ModuleNames kMegatronModules{"embedding", "decoder.layers.", "decoder.final_layernorm", "output_layer"};

class MegatronDecoder : public LoweredDecoder {
 public:
  /// `rows` in the order in which modules are registered.
  MegatronDecoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
                  const MegatronOptions& megatron, const ClassRow& row, std::span<const MegatronRow> rows);

  void create() override;
  void end_step() override {
    tokens_ = {};
    inputs_.clear();
  }

 protected:
  struct MegatronParameter {
    std::string name;
    Dims sizes;
    Cut cut = Cut::none;
  };

  /// Parameters, in the order of their names.
  virtual void make_all();
  void make(std::size_t number);
  /// Of a micro-batch; it stays until the step ends.
  Tensor input(std::string_view name, const Dims& sizes, Scalar scalar = Scalar::i64) {
    return inputs_.emplace_back(named(name, Category::input, sizes, scalar));
  }

  [[nodiscard]] const std::vector<MegatronParameter>& listed() const { return listed_; }
  [[nodiscard]] Cut cut_of(const model::Operator& op) const { return listed_[registered(place_of(op))].cut; }
  /// As tokenizers are padded to 128 a rank.
  [[nodiscard]] std::int64_t vocabulary() const {
    const std::int64_t unit = 128 * megatron_.tensor;
    return (model_.vocabulary + unit - 1) / unit * 128;
  }
  [[nodiscard]] bool cut_sequence() const { return megatron_.sequence_parallel; }
  /// Of a sequence on this rank, outside of products.
  [[nodiscard]] std::int64_t part() const {
    return cut_sequence() ? options_.sequence / megatron_.tensor : options_.sequence;
  }
  /// mappings.py: this rank's part of a sequence by a collective of this name; backward gathers.
  Tensor parted(const Tensor& x, const char* collective);

  MegatronOptions megatron_;
  Tensors inputs_;

 private:
  using Operators = std::vector<const model::Operator*>;

  void list(const std::string& name, Cut cut, const Operators& of);
  void list_layer(const LoweredPart& layer, const std::string& prefix, std::span<const MegatronRow> rows);
  [[nodiscard]] Dims sizes_of(Cut cut, const Operators& of, std::size_t i) const;

  std::vector<MegatronParameter> listed_;
};

}  // namespace shard::like::eager
