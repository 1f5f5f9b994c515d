// A run that somebody measured and published: one row of a typed table of such runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/kernel_laws.h"
#include "sim/validate/settings.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::validate {

struct PublishedMemory {
  MemoryKind kind = MemoryKind::not_stated;
  Bytes bytes;
};

/// Numbers that nobody states are 0.
struct PublishedRun {
  std::string id, framework_name, model, gpu;
  Evidence evidence = Evidence::measured;
  Outcome outcome = Outcome::ran;
  std::vector<PublishedMemory> memory;      ///< at most two kinds
  bool host_memory_only = false;            ///< the memory stated is the host's
  std::optional<double> tokens_per_second;  ///< per GPU

  Framework framework = Framework::other;
  Code code = Code::hugging_face;
  Family family = Family::gpt2;
  bool mixture = false;  ///< of experts
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, sequence = 0;
  bool tied = false;
  std::int64_t gpu_bytes = 0;
  std::int64_t ranks = 1, tensor = 1, pipeline = 1, pipeline_chunks = 1, context = 1, shard_degree = 1, stage = 0;
  bool sequence_parallel = false, reshard_after_forward = true, asynchronous_tensor = false;
  std::int64_t ranks_per_host = 0;
  HostLink host_link = HostLink::nvlink;
  std::int64_t host_link_bytes_per_second = 0;  ///< of NVLink, both ways together, where it is not the card's usual
  std::int64_t network_bytes_per_second = 0;    ///< of one GPU's share
  std::int64_t power_watts = 0;                 ///< where it is not the card's usual limit
  Wrapping wrapping = Wrapping::none;
  Precision precision = Precision::fp32;
  ComputeType compute_type = ComputeType::fp32;
  bool autocast = false;
  std::int64_t reduced_bits = 32;  ///< of gradients as they are exchanged
  Float8 float8 = Float8::none;
  Float8Scales float8_scales = Float8Scales::none;
  std::int64_t weight_bits = 16;
  std::int64_t micro_batch = 1, accumulation = 1;  ///< sequences of a tensor-parallel group
  Recompute recompute = Recompute::none;
  bool recompute_keeps_attention = true;  ///< selective
  Compile compile = Compile::none;
  bool fused_kernels = false;  ///< Inductor's, not operators of a captured graph
  Attention attention = Attention::flash;
  cluster::AttentionKernel attention_kernel = cluster::AttentionKernel::flash_2;
  Loss loss = Loss::eager;
  Norms norms = Norms::fused;
  Optimizer optimizer = Optimizer::adamw;
  OptimizerStep optimizer_step = OptimizerStep::foreach;
  std::int64_t optimizer_bits = 32;
  Adapter adapter = Adapter::none;
  std::int64_t adapter_rank = 0;
  bool offload_parameters = false, offload_optimizer = false, offload_activations = false;
  bool expandable_segments = false;
  /// "micro_batch 1, accumulation 1": settings that nobody states and that are no framework's default.
  std::string assumed;

  [[nodiscard]] bool upper_bound() const { return evidence == Evidence::maximum; }
  [[nodiscard]] bool measured() const { return evidence == Evidence::measured; }
};

/// A table whose first row names its columns: those of tests/validation/README.md, in any order; unknown ones are
/// ignored. Errors: those of parse_csv; malformed where a column is absent, as in a table in its publishers' words, or
/// a cell is none of the column's words.
[[nodiscard]] Result<std::vector<PublishedRun>> read_published_runs(std::string_view text, std::string_view file);

}  // namespace shard::validate
