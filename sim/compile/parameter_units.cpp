// Parameters into units, and the parts of a flat that a rank owns.
#include "sim/compile/parameter_units.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>

namespace shard::plan {
namespace {

/// Parameters of one unit; a flat each, or one flat for all.
struct Named {
  std::string name;
  std::vector<std::int32_t> params;
};

std::string key_of(const model::Model& model, std::size_t p, UnitKind kind) {
  const std::string& name = model.parameters[p].name;
  switch (kind) {
    case UnitKind::tensor: return name;
    case UnitKind::bucket: return std::string(module_name(name));
    case UnitKind::module:
      if (model.parameter_block[p] >= 0) return "block " + std::to_string(model.parameter_block[p]);
      return std::string(module_name(name));
    case UnitKind::chunk: break;
  }
  return name;
}

std::vector<Named> group(const model::Model& model, UnitKind kind) {
  std::vector<Named> groups;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    std::string key = key_of(model, p, kind);
    if (groups.empty() || groups.back().name != key) groups.push_back({std::move(key), {}});
    groups.back().params.push_back(static_cast<std::int32_t>(p));
  }
  return groups;
}

Flat flatten(const model::Model& model, const std::vector<std::int32_t>& params, std::int32_t shards) {
  Flat flat;
  for (std::int32_t p : params) {
    const Elems elems = model.parameters[static_cast<std::size_t>(p)].elems;
    flat.items.push_back({.param = model::ParamId{p}, .offset = flat.used, .elems = elems});
    flat.frozen = model.is_frozen(model::ParamId{p});
    flat.used += elems;
  }
  flat.elems = round_up(flat.used, shards);
  return flat;
}

/// The chunks of parameters `params`, whose sizes are `elems`.
ChunkLayout chunks_of(const Strategy& strategy, const std::vector<std::int32_t>& params,
                      const std::vector<Elems>& elems) {
  if (!strategy.has_variable_chunks()) return layout_uniform(elems, strategy.chunk_elems, strategy.cuts());
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < params.size(); ++i)
    if (std::ranges::binary_search(strategy.chunk_starts, params[i])) starts.push_back(i);
  return layout_variable(elems, starts, strategy.cuts());
}

std::vector<Named> chunk_groups(const model::Model& model, const Strategy& strategy, std::vector<Elems>& sizes) {
  std::vector<Named> groups;
  for (const bool frozen : {false, true}) {
    std::vector<std::int32_t> params;
    std::vector<Elems> elems;
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      const auto id = static_cast<std::int32_t>(p);
      if (model.is_frozen(model::ParamId{id}) != frozen) continue;
      params.push_back(id);
      elems.push_back(model.parameters[p].elems);
    }
    if (params.empty()) continue;
    const std::size_t before = groups.size();
    for (const Chunk& chunk : chunks_of(strategy, params, elems).chunks) {
      Named group{(frozen ? "frozen chunk " : "chunk ") + std::to_string(groups.size() - before), {}};
      for (const PlacedParameter& p : chunk.parameters)
        group.params.push_back(params[static_cast<std::size_t>(p.parameter)]);
      groups.push_back(std::move(group));
      sizes.push_back(chunk.elems);
    }
  }
  return groups;
}

/// Those of a unit's parameters that share a flat.
std::vector<std::vector<std::int32_t>> cut(const model::Model& model, const Named& unit, UnitKind kind) {
  std::vector<std::vector<std::int32_t>> flats;
  if (kind == UnitKind::bucket) {
    for (std::int32_t p : unit.params) flats.push_back({p});
    return flats;
  }
  for (const bool frozen : {false, true}) {
    std::vector<std::int32_t> params;
    std::ranges::copy_if(unit.params, std::back_inserter(params),
                         [&](std::int32_t p) { return model.is_frozen(model::ParamId{p}) == frozen; });
    if (!params.empty()) flats.push_back(std::move(params));
  }
  return flats;
}

/// Whole units to the members of a shard group.
void deal_units(const Strategy& strategy, const std::vector<Unit>& units, std::vector<Flat>& flats) {
  std::vector<std::int64_t> load(static_cast<std::size_t>(strategy.shard_degree()), 0);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const std::size_t owner = strategy.chunk_per_tensor
                                  ? static_cast<std::size_t>(std::ranges::min_element(load) - load.begin())
                                  : u % load.size();
    for (std::int32_t f : units[u].flats) {
      Flat& flat = flats[static_cast<std::size_t>(f)];
      flat.owner = static_cast<std::int32_t>(owner);
      load[owner] += flat.elems.count();
    }
  }
}

}  // namespace

std::pair<std::vector<Flat>, std::vector<Unit>> make_units(const model::Model& model, const Strategy& strategy) {
  std::vector<Flat> flats;
  std::vector<Unit> units;
  std::vector<Elems> chunk_sizes;
  const bool chunked = strategy.unit == UnitKind::chunk && !strategy.chunk_per_tensor;
  const std::vector<Named> groups =
      chunked ? chunk_groups(model, strategy, chunk_sizes)
              : group(model, strategy.unit == UnitKind::chunk ? UnitKind::tensor : strategy.unit);
  for (const Named& g : groups) {
    Unit unit{.name = g.name, .flats = {}};
    const UnitId id{static_cast<std::int32_t>(units.size())};
    const auto add = [&](const std::vector<std::int32_t>& params) {
      Flat flat = flatten(model, params, strategy.cuts());
      if (chunked) flat.elems = chunk_sizes[units.size()];
      flat.unit = id;
      unit.flats.push_back(static_cast<std::int32_t>(flats.size()));
      flats.push_back(std::move(flat));
    };
    for (const std::vector<std::int32_t>& params : cut(model, g, strategy.unit)) add(params);
    units.push_back(std::move(unit));
  }
  if (strategy.has_owners()) deal_units(strategy, units, flats);
  return {std::move(flats), std::move(units)};
}

std::vector<std::int32_t> greedy_owners(const ParameterList& parameters, std::int32_t ranks,
                                        const std::vector<bool>& frozen) {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return parameters[a].elems > parameters[b].elems; });
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks), 0);
  std::vector<std::int32_t> owners(parameters.size(), -1);
  for (std::size_t p : order) {
    if (!frozen.empty() && frozen[p]) continue;
    const auto least = std::min_element(load.begin(), load.end());
    owners[p] = static_cast<std::int32_t>(least - load.begin());
    *least += parameters[p].elems.count();
  }
  return owners;
}

std::string flat_name(const Plan& plan, const Flat& flat) {
  const Unit& unit = plan.units[static_cast<std::size_t>(flat.unit.value)];
  if (unit.flats.size() == 1) return unit.name;
  if (plan.strategy.unit == UnitKind::bucket)
    return plan.model->parameters[static_cast<std::size_t>(flat.items.front().param.value)].name;
  return flat.frozen ? unit.name + " frozen" : unit.name;
}

Unit trained_part(const Plan& plan, Unit unit) {
  std::erase_if(unit.flats, [&](std::int32_t f) { return plan.flats[static_cast<std::size_t>(f)].frozen; });
  return unit;
}

}  // namespace shard::plan
