// Reads ordered parameter lists; trusts nothing in them.
#include "sim/model/parameters.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "traces/base/read_file.h"

namespace shard {
namespace {

using Json = nlohmann::json;

/// A hundred bytes a parameter, and a million of them.
constexpr Bytes kLargestList{128 << 20};

/// Where a fault is: "FILE: /3/shape/1".
class Pointer {
 public:
  Pointer(std::string_view file, std::size_t index) : text_(file) { text_ += "#/" + std::to_string(index); }
  [[nodiscard]] std::string at(const std::string& child) const { return text_ + "/" + child; }
  [[nodiscard]] const std::string& here() const { return text_; }

 private:
  std::string text_;
};

Error malformed(std::string what, std::string where, std::string help = "") {
  return Error{Errc::malformed, std::move(what), std::move(where), std::move(help)};
}

/// A JSON integer that fits int64 and is at least 1.
std::optional<std::int64_t> positive(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number >= 1 && number <= static_cast<std::uint64_t>(kMaxTotalElems.count())) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

/// A faulty value in a message: numbers as they are, anything else by its type (dump recurses, and strings may be
/// long).
std::string shown(const Json& value) {
  return value.is_number() ? value.dump() : value.type_name();
}

Result<Parameter> parse_parameter(const Json& item, const Pointer& pointer) {
  if (!item.is_object()) return malformed("a parameter is an object with name, shape and numel", pointer.here());
  Parameter parameter;

  const auto name = item.find("name");
  if (name == item.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    return malformed("a parameter needs a name, a string that is not empty", pointer.at("name"));
  }
  parameter.name = name->get<std::string>();

  const auto shape = item.find("shape");
  if (shape == item.end() || !shape->is_array()) {
    return malformed("parameter '" + parameter.name + "' needs a shape, a list of integers", pointer.at("shape"));
  }
  std::int64_t product = 1;
  for (std::size_t axis = 0; axis < shape->size(); ++axis) {
    const std::optional<std::int64_t> size = positive((*shape)[axis]);
    if (!size) {
      return malformed(
          "a dimension of '" + parameter.name + "' is not an integer from 1 to 2^60: " + shown((*shape)[axis]),
          pointer.at("shape/" + std::to_string(axis)), "leave parameters without elements out");
    }
    if (product > kMaxTotalElems.count() / *size) {
      return malformed("the shape of '" + parameter.name + "' has more than 2^60 elements", pointer.at("shape"));
    }
    product *= *size;
    parameter.shape.push_back(*size);
  }
  parameter.elems = Elems{product};

  const auto numel = item.find("numel");
  if (numel != item.end() && positive(*numel) != product) {
    return malformed("numel of '" + parameter.name + "' is " + shown(*numel) + ", its shape has " +
                         std::to_string(product) + " elements",
                     pointer.at("numel"), "correct the shape, or leave numel out");
  }
  return parameter;
}

}  // namespace

std::string_view module_name(std::string_view parameter_name) {
  const std::size_t dot = parameter_name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : parameter_name.substr(0, dot);
}

Elems total_elems(const ParameterList& parameters) {
  Elems total;
  for (const Parameter& parameter : parameters) total += parameter.elems;
  return total;
}

Result<ParameterList> parse_parameter_list(std::string_view json, std::string_view where) {
  Json root;
  try {
    root = Json::parse(json);
  } catch (const Json::exception& error) {  // of numbers beyond double too
    return malformed(std::string("not JSON: ") + error.what(), std::string(where));
  }
  if (!root.is_array()) {
    return malformed("a parameter list is a JSON list of {name, shape, numel}", std::string(where),
                     "a Hugging Face config.json goes to --model, not --parameters");
  }
  if (root.empty()) return malformed("the parameter list is empty", std::string(where));

  ParameterList list;
  list.reserve(root.size());
  std::unordered_map<std::string, std::size_t> seen;
  std::int64_t total = 0;
  for (std::size_t index = 0; index < root.size(); ++index) {
    const Pointer pointer(where, index);
    Result<Parameter> parameter = parse_parameter(root[index], pointer);
    if (!parameter) return parameter.error();
    const auto [first, inserted] = seen.emplace(parameter->name, index);
    if (!inserted) {
      return malformed(
          "parameter '" + parameter->name + "' is listed twice, first at /" + std::to_string(first->second),
          pointer.at("name"), "list a tied weight once");
    }
    if (parameter->elems.count() > kMaxTotalElems.count() - total) {
      return malformed("the list has more than 2^60 elements in all", pointer.here());
    }
    total += parameter->elems.count();
    list.push_back(std::move(*parameter));
  }
  return list;
}

Result<ParameterList> read_parameter_list(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, "parameter list", kLargestList);
  if (!text) return text.error();
  return parse_parameter_list(*text, path.string());
}

}  // namespace shard
