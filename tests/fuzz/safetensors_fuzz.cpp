// Fuzz target: no head of a safetensors file and no index makes a reader crash, or pass over what breaks its promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "executor/state/safetensors.h"
#include "tests/fuzz/limits.h"

namespace {

using namespace shard;

/// Tensors lie end to end, as long as their elements.
void check_tensors(const std::vector<safetensors::Tensor>& tensors, std::int64_t data_bytes) {
  std::int64_t at = 0;
  for (const safetensors::Tensor& t : tensors) {
    std::int64_t elements = 1;
    for (const std::int64_t size : t.shape) elements *= size;
    if (elements != t.elements || t.begin != at || t.end < t.begin) std::abort();
    if ((t.end - t.begin) * 8 != elements * safetensors::bits_of(t.dtype)) std::abort();
    at = t.end;
  }
  if (at != data_bytes) std::abort();
}

void check_error(const Error& error) {
  if (error.code != Errc::malformed || error.what.empty() || error.where.empty()) std::abort();
}

}  // namespace

// A file: its first 8 bytes, the header, and as many bytes of tensors as are left.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Limits limits(size);
  const auto bytes = static_cast<std::int64_t>(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto length = safetensors::read_prefix(std::as_bytes(std::span(data, size)), bytes, "fuzz.safetensors");
  if (length) {
    const std::int64_t rest = bytes - safetensors::kPrefixBytes - *length;
    if (*length < 0 || rest < 0) std::abort();
    const std::string_view header = text.substr(safetensors::kPrefixBytes, static_cast<std::size_t>(*length));
    if (const auto tensors = safetensors::parse_header(header, rest, "fuzz.safetensors")) {
      check_tensors(*tensors, rest);
      const auto again = safetensors::parse_header(safetensors::write_header(*tensors), rest, "again");
      if (!again || again->size() != tensors->size()) std::abort();
    } else {
      check_error(tensors.error());
    }
  } else {
    check_error(length.error());
  }
  // The same text as an index.
  if (const auto index = safetensors::parse_index(text, "fuzz.index.json")) {
    for (const safetensors::IndexEntry& entry : *index)
      if (entry.file.empty() || entry.file.find('/') != std::string::npos) std::abort();
  } else {
    check_error(index.error());
  }
  return 0;
}
