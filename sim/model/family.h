// A family's table and one config.json -> the model's sizes and parameters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/config_fields.h"
#include "sim/model/expression.h"
#include "sim/model/family_table.h"
#include "sim/model/graph.h"

namespace shard::model {

/// What operators are made from: the table, and the values that its names have for one model.
struct FamilyValues {
  const FamilyTable* table = nullptr;
  Values values;
  std::string activation;  ///< transformers' word for the function between the products of feed-forward
  std::map<std::string_view, std::vector<std::int64_t>> lists;  ///< the layers that each list names, in order
};

/// Sets `layer`, and each list to whether it names this layer.
void enter_layer(const FamilyValues& family, std::int64_t layer, Values& values);

/// Reads the table's fields and appends parameters in the order in which Hugging Face's class registers them. Faults
/// are in fields.error(); the model is then incomplete. `table` must outlive the model.
void describe_family(const FamilyTable& table, ConfigFields& fields, Model& model);

/// The model with the parameters of its simulated part alone, and a note that says so; most models are simulated whole.
[[nodiscard]] Model simulated_part(Model model);

/// The forward operators, by the rows of the model's table. Model::not_simulated is empty.
[[nodiscard]] Graph family_graph(const Model& model, std::int64_t batch, std::int64_t sequence);

}  // namespace shard::model
