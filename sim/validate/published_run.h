// A run that somebody measured and published: one row of a table of such runs, its words turned into quantities.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::validate {

/// What a published figure of memory counts.
enum class MemoryKind : std::uint8_t {
  allocated,   ///< torch.cuda.max_memory_allocated
  active,      ///< with blocks whose free waits for a stream
  reserved,    ///< torch.cuda.max_memory_reserved
  nvidia_smi,  ///< of the process, with context and libraries
  states,      ///< parameters, gradients and optimizer states alone
  not_stated,
};

[[nodiscard]] constexpr const char* to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::allocated: return "allocated";
    case MemoryKind::active: return "active";
    case MemoryKind::reserved: return "reserved";
    case MemoryKind::nvidia_smi: return "nvidia-smi";
    case MemoryKind::states: return "model states";
    case MemoryKind::not_stated: return "not stated";
  }
  return "?";
}

struct PublishedMemory {
  MemoryKind kind = MemoryKind::not_stated;
  Bytes bytes;
};

enum class Outcome : std::uint8_t {
  ran,
  fits_only,  ///< ran; its memory is known as no more than the device's
  out_of_memory,
};

/// A row. Numbers that the row does not state are 0.
struct PublishedRun {
  std::string id, source, date, framework, model, gpu, sharding, offload, precision, recompute, compile, attention,
      notes;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0, sequence = 0;
  double parameters = 0;
  double gpu_gib = 0;
  std::int64_t gpus = 0, gpus_per_node = 0;
  std::int64_t stage = 0;
  bool stage_stated = false;
  std::int64_t shard_degree = 0, tensor = 0, pipeline = 0, context = 0;
  std::int64_t micro_batch = 0, accumulation = 0;
  std::vector<PublishedMemory> memory;      ///< at most two kinds
  bool host_memory_only = false;            ///< the memory stated is the host's
  std::optional<double> tokens_per_second;  ///< per GPU, as stated or out of steps or samples per second
  Outcome outcome = Outcome::ran;
  bool measured = false;     ///< somebody ran it; otherwise it is arithmetic on paper
  bool upper_bound = false;  ///< a stated maximum: only that it fits is known
};

/// A table whose first row names its columns (those of docs/validation.md, in any order; unknown ones are ignored).
/// Errors: those of parse_csv, and malformed where 'framework', 'model' or 'outcome' is absent.
[[nodiscard]] Result<std::vector<PublishedRun>> read_published_runs(std::string_view text, std::string_view file);

}  // namespace shard::validate
