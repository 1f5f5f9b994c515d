// Opens the data source that an argument names.
#include "executor/data/source.h"

#include "executor/data/sources.h"

namespace shard {

std::vector<std::filesystem::path> files_of_data(const std::string& argument) {
  std::vector<std::filesystem::path> paths;
  if (argument == "random") return paths;
  const Result<std::vector<data::DataFile>> files = data::data_files(argument);
  if (!files) return paths;
  for (const data::DataFile& file : *files) {
    paths.push_back(file.path);
    std::filesystem::path index = file.path;
    index.replace_extension(".idx");
    if (std::error_code fault; !file.text && std::filesystem::exists(index, fault)) paths.push_back(index);
  }
  return paths;
}

Result<std::unique_ptr<DataSource>> open_data(std::string_view argument, const model::Model& model,
                                              const BatchShape& shape) {
  if (argument == "random") {
    if (shape.order == DataOrder::random) return data::make_random(model, shape);
    return Error{.code = Errc::contradiction,
                 .what = "--data random has no end, and no order",
                 .where = "--data-order " + std::string(to_string(shape.order)),
                 .help = "leave --data-order out, or --data FILE"};
  }
  const Result<std::vector<data::DataFile>> files = data::data_files(argument);
  if (!files) return files.error();
  if (model.family == model::Family::mlp)
    return Error{
        .code = Errc::contradiction,
        .what = "--data " + std::string(argument) + " holds tokens, but model " + model.name + " (mlp) takes samples",
        .where = "--data",
        .help = "--data random"};
  return data::open_tokens(*files, model, shape);
}

}  // namespace shard
