// The safetensors format: what the head of a file says of its tensors, and an index of several files. Trusts nothing.
//
// A file is the length of its header (8 bytes, little-endian), the header (a JSON object), and the tensors' bytes. The
// header has {"dtype": word, "shape": [sizes], "data_offsets": [begin, end]} for each tensor's name, offsets counted
// from the end of the header, and may have "__metadata__", an object of strings. Tensors fill the rest of the file: no
// overlap, no hole, nothing behind them. Source: https://github.com/huggingface/safetensors, README.md "Format".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/dtype.h"
#include "traces/base/result.h"

namespace shard::safetensors {

/// The bytes in front of the header, which say its length.
inline constexpr std::int64_t kPrefixBytes = 8;
/// As the format's own library: a longer header is refused before anything of it is read.
inline constexpr std::int64_t kMostHeaderBytes = 100'000'000;

struct Tensor {
  std::string name;
  std::string dtype;  ///< the format's word: "F32"
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;  ///< product of the shape, 1 for a scalar
  std::int64_t begin = 0;     ///< in the tensors' bytes
  std::int64_t end = 0;
};

/// The length of the header that `prefix` promises. `where` names the file in errors: malformed where the header would
/// not fit into a file of `file_bytes`, or is longer than kMostHeaderBytes; says so where the file is another format.
[[nodiscard]] Result<std::int64_t> read_prefix(std::span<const std::byte> prefix, std::int64_t file_bytes,
                                               std::string_view where);
/// What stands before a header of that length.
[[nodiscard]] std::array<std::byte, kPrefixBytes> write_prefix(std::int64_t header_bytes);

/// The tensors of a file, by where they begin. `data_bytes`: of the file behind the header. Errors: malformed for
/// whatever the format does not allow, with the tensor's name.
[[nodiscard]] Result<std::vector<Tensor>> parse_header(std::string_view header, std::int64_t data_bytes,
                                                       std::string_view where);
/// The header of these tensors, padded with spaces to a multiple of 8 bytes, and marked as transformers wants it.
[[nodiscard]] std::string write_header(std::span<const Tensor> tensors);

/// An entry of model.safetensors.index.json: which file of its folder has the tensor.
struct IndexEntry {
  std::string tensor;
  std::string file;
};
/// Entries in the order of the text, {"weight_map": {tensor: file}}. Errors: malformed; a file outside of the folder,
/// too.
[[nodiscard]] Result<std::vector<IndexEntry>> parse_index(std::string_view text, std::string_view where);

/// The format's word for a type.
[[nodiscard]] const char* dtype_word(Dtype dtype);
/// Bits of an element of the format's dtypes; 0 for any other word.
[[nodiscard]] int bits_of(std::string_view dtype);

/// "64x32", "scalar".
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);
/// A name out of a file in quotes, cut where it is long.
[[nodiscard]] std::string in_quotes(std::string_view name);

}  // namespace shard::safetensors
