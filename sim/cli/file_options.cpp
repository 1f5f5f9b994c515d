// Every output against every input and every other output.
#include "sim/cli/file_options.h"

#include "sim/cli/contradiction.h"
#include "traces/base/file_place.h"

namespace shard::cli {
namespace {

using Kind = NamedFile::Kind;

/// "--log d.txt is", "--save-weights d writes d/model.safetensors, which is".
std::string is_text(const NamedFile& output) {
  return output.kind == Kind::within ? output.option + " writes " + output.path.string() + ", which is"
                                     : output.option + " is";
}

std::string what_of(const NamedFile& other) {
  if (other.kind == Kind::within) return other.path.string() + " of " + other.option;
  return (other.kind == Kind::directory ? "the directory of " : "the file of ") + other.option;
}

/// What is written into a directory loses nothing else that is read of it.
bool meets(const NamedFile& output, const NamedFile& other, bool other_is_read) {
  std::error_code fault;
  if (other_is_read && output.kind == Kind::directory && std::filesystem::is_directory(output.path, fault))
    return false;
  return same_file(output.path, other.path);
}

}  // namespace

Result<void> check_files(std::span<const NamedFile> read, std::span<const NamedFile> written) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    for (const NamedFile& input : read)
      if (meets(written[i], input, true))
        return contradiction(is_text(written[i]) + " " + what_of(input) + ", which would be lost",
                             "another name for the output");
    for (std::size_t j = 0; j < i; ++j)
      if (written[i].option != written[j].option && meets(written[i], written[j], false))
        return contradiction(is_text(written[i]) + " " + what_of(written[j]) + ", one of which would be lost",
                             "another name for one of them");
  }
  for (const NamedFile& output : written) {
    if (output.kind != Kind::file) continue;
    Result<void> possible = can_write(output.path);
    if (possible) continue;
    Error error = possible.error();
    error.where = output.option;
    return error;
  }
  return {};
}

}  // namespace shard::cli
