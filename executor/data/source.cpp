// Opens the data source that an argument names.
#include "executor/data/source.h"

#include "executor/data/sources.h"

namespace shard {

namespace {

constexpr std::string_view kText = "text:";

}  // namespace

std::optional<std::filesystem::path> data_file(std::string_view argument) {
  if (argument == "random") return std::nullopt;
  return argument.starts_with(kText) ? argument.substr(kText.size()) : argument;
}

Result<std::unique_ptr<DataSource>> open_data(std::string_view argument, const model::Model& model,
                                              const BatchShape& shape) {
  if (argument == "random") return data::make_random(model, shape);
  const bool text = argument.starts_with(kText);
  const bool tokens = argument.ends_with(".bin");
  if (!text && !tokens)
    return Error{
        .code = Errc::usage,
        .what = "'" + std::string(argument) + "' names no kind of data",
        .where = "--data",
        .help = "--data random, --data text:" + std::string(argument) + ", or a token file whose name ends in .bin"};
  if (model.family == model::Family::mlp)
    return Error{
        .code = Errc::contradiction,
        .what = "--data " + std::string(argument) + " holds tokens, but model " + model.name + " (mlp) takes samples",
        .where = "--data",
        .help = "--data random"};
  if (text) return data::open_tokens(*data_file(argument), data::TokenForm::bytes, model, shape);
  return data::open_tokens(*data_file(argument), data::TokenForm::uint16, model, shape);
}

}  // namespace shard
