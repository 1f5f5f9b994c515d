// Fuzz target: no manifest of a checkpoint makes a reader crash, or believe pieces that do not make up their files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "executor/state/checkpoint/manifest.h"
#include "executor/state/checkpoint/part.h"
#include "tests/fuzz/limits.h"

namespace {

using namespace shard;

/// Pieces lie end to end; writing it and reading that gives the same.
void check_manifest(const checkpoint::Manifest& manifest) {
  if (manifest.step < 0 || manifest.tokens < 0 || manifest.micro_batches < 0) std::abort();
  for (const checkpoint::FileEntry& file : manifest.files) {
    if (!checkpoint::is_file_name(file.name)) std::abort();
    std::int64_t at = 0;
    for (const checkpoint::Piece& piece : file.pieces) {
      if (piece.offset != at || piece.bytes <= 0 || piece.bytes > checkpoint::kPieceBytes) std::abort();
      at += piece.bytes;
    }
    if (at != file.bytes) std::abort();
  }
  const auto again = checkpoint::parse(checkpoint::to_text(manifest), "again");
  if (!again || !(*again == manifest)) std::abort();
}

void check_result(const Result<checkpoint::Manifest>& parsed) {
  if (parsed) return check_manifest(*parsed);
  const Error& error = parsed.error();
  if (error.code != Errc::malformed || error.what.empty() || error.where.empty() || error.help.empty()) std::abort();
}

}  // namespace

// As a file, whose checksum is seldom right; as what stands under a right checksum; and as pieces that a rank sends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Limits limits(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_result(checkpoint::parse(text, "manifest.json"));
  check_result(checkpoint::parse_body(text, "manifest.json"));
  if (const auto pieces = checkpoint::unpack(text)) {
    const auto again = checkpoint::unpack(checkpoint::pack(*pieces));
    if (!again || !(*again == *pieces)) std::abort();
  }
  return 0;
}
