// Fuzz target: no pickle of a torch.save file or of a DCP folder, and no damaged zip, makes a reader crash, or believe
// a tensor that is not there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "executor/state/torch/forms.h"
#include "tests/fuzz/limits.h"
#include "tests/state/zip_of.h"

namespace {

using namespace shard;

void check_error(const Error& error) {
  const bool known = error.code == Errc::malformed || error.code == Errc::contradiction || error.code == Errc::no_input;
  if (!known || error.what.empty() || error.where.empty() || error.help.empty()) std::abort();
}

/// Every element of every tensor, once.
void check_values(torch::TrainingState& state) {
  if (const Result<void> whole = torch::settle(state); !whole) return check_error(whole.error());
  for (const torch::StateTensor& tensor : state.tensors) {
    std::int64_t seen = 0;
    const Result<void> read = torch::for_each_value(state, tensor, [&](std::int64_t first, std::span<const float> v) {
      if (first < 0 || first + std::ssize(v) > torch::elements_of(tensor.shape)) std::abort();
      seen += std::ssize(v);
      return Result<void>();
    });
    if (!read) return check_error(read.error());
    if (seen != torch::elements_of(tensor.shape)) std::abort();
  }
}

void check_archive(const std::string& zip) {
  const auto archive = torch::Archive::memory(std::as_bytes(std::span(zip)), "fuzz");
  if (!archive) return check_error(archive.error());
  torch::TrainingState state;
  state.path = "fuzz";
  if (const Result<void> added = torch::add_saved(*archive, state); !added) return check_error(added.error());
  check_values(state);
}

void check_metadata(std::string_view text) {
  import::ByteSource source = import::ByteSource::memory(std::as_bytes(std::span(text)), "fuzz");
  torch::TrainingState state;
  state.path = "fuzz";
  if (const Result<void> read = torch::read_metadata(source, "/nonexistent", state); !read)
    return check_error(read.error());
  check_values(state);
}

}  // namespace

// As a zip, whose checksums are seldom right; as the pickle of one that is right; as the pickle of a folder.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Limits limits(4 * size);
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("PK")) {
    check_archive(text);
    return 0;
  }
  std::string storage(256, '\x3f');
  check_archive(test::zip_of({{"x/data.pkl", text}, {"x/data/0", storage}, {"x/data/1", storage.substr(0, 24)}}));
  check_metadata(text);
  return 0;
}
