// Where each tensor of a checkpoint lies: which file, at which byte. The same tensors always give the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shard::checkpoint {

/// What a checkpoint says of the shards of a model, as Hugging Face names it.
inline constexpr const char* kIndexFile = "model.safetensors.index.json";

/// How the names of files of weights, and of state, begin.
inline constexpr const char* kWeightsStem = "model";
inline constexpr const char* kStateStem = "optimizer";

struct TensorSpec {
  std::string name;
  std::string dtype;  ///< safetensors' word: F32, BF16, F16, I32
  std::vector<std::int64_t> shape;
};

struct Layout {
  struct Place {
    std::int32_t file = 0;    ///< of `files`
    std::int64_t offset = 0;  ///< in the file, not in its tensors' bytes
    std::int64_t bytes = 0;
  };
  struct File {
    std::string name;
    std::string head;        ///< the safetensors prefix and header, with which the file begins
    std::int64_t bytes = 0;  ///< of the whole file
  };
  std::vector<TensorSpec> tensors;  ///< weights first, then state, in the order given
  std::vector<Place> places;        ///< of each tensor
  std::vector<File> files;          ///< those of the weights first; each tensor behind the one before it
  std::string index;                ///< what kIndexFile says; empty where the weights are one file, and it is not made
  std::int64_t bytes = 0;           ///< of all files, the index with them
};

/// Weights into model.safetensors or, where they have more than `largest_file` bytes, into
/// model-00001-of-0000N.safetensors and so on, cut between tensors as transformers does (a larger tensor is a file by
/// itself), with an index; state into optimizer.safetensors or optimizer-00001-of-0000N.safetensors. Nothing of either
/// makes no file. Names are unique, dtypes are safetensors', sizes not negative.
[[nodiscard]] Layout lay_out(std::span<const TensorSpec> weights, std::span<const TensorSpec> state,
                             std::int64_t largest_file = 5'000'000'000);

}  // namespace shard::checkpoint
