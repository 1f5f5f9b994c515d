// Training programs that eager PyTorch runs, written down as their Python is, local name by local name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/like/eager/optimizers.h"
#include "sim/like/eager/versions.h"
#include "sim/model/graph.h"

namespace shard::like::eager {

/// What the loss is taken of.
enum class Logits : std::uint8_t {
  usual,  ///< as the release of transformers does
  fp32,
  own,  ///< in their own type, shifted
};

enum class Attention : std::uint8_t { sdpa, eager };

/// What changed in torchtitan; as it is, that of autumn 2025.
struct Torchtitan {
  bool fused_norms = true;      ///< nn.RMSNorm is one kernel, as in PyTorch since 2.9
  bool ends_apart = true;       ///< the embedding, and the last norm with the output, are units (since 83e694105)
  bool compiled = false;        ///< blocks, one by one
  bool compiled_loss = false;   ///< too (since d1f62be73)
  bool keeps_attention = true;  ///< selectively: not of cuDNN's kernel before b39377f9f
  friend bool operator==(const Torchtitan&, const Torchtitan&) = default;
};

/// What a program is told beside its model.
struct ProgramOptions {
  std::int64_t batch = 1;
  std::int64_t sequence = 1;
  Scalar precision = Scalar::f32;
  Attention attention = Attention::sdpa;
  Logits logits = Logits::usual;
  Version transformers = kUsualTransformers;
  bool checkpoint = false;  ///< of every block, without reentrance
  bool cache = true;        ///< use_cache, which checkpoints turn off
  bool selective = false;   ///< torchtitan: results of every second product and of attention are kept
  Torchtitan torchtitan{};
  std::optional<Scalar> autocast{};  ///< forward runs under torch.autocast of this type
};

/// Runtime::named() outside of all modules: parameters, buffers and inputs.
[[nodiscard]] inline Tensor model_tensor(Runtime& r, std::string_view name, Category category, const Dims& sizes,
                                         Scalar scalar) {
  r.tape().set_module("", -1);
  return r.named(name, category, sizes, scalar);
}

/// A model in training.
class Program {
 public:
  virtual ~Program() = default;
  /// Parameters, buffers, and the batch that every step reads.
  virtual void create() = 0;
  /// The loss of the batch; what a script still holds of the step before lives until it is bound again.
  virtual Tensor loss() = 0;
  /// What the step's function held goes, when it ends.
  virtual void end_step() = 0;
};

/// The transformer of the course CS336 (assignment 2, benchmark_nvtx.py), in the shape of a llama.
[[nodiscard]] std::unique_ptr<Program> course_program(Runtime& runtime, const model::Model& model,
                                                      const ProgramOptions& options);

/// torchtitan's llama3 and qwen3.
[[nodiscard]] std::unique_ptr<Program> torchtitan_program(Runtime& runtime, const model::Model& model,
                                                          const ProgramOptions& options);

/// Whether transformers' code of the model's class is known.
[[nodiscard]] bool is_known_decoder(const model::Model& model);
/// Of a known decoder: the releases of transformers, first to last, in which dry runs of it were as they are told here.
struct Releases {
  Version oldest, newest;
};
[[nodiscard]] Releases transformers_of(const model::Model& model);
/// Of a known decoder: whether attention is written out, whatever a program is told.
[[nodiscard]] bool lacks_sdpa(const model::Model& model);
/// Of a known decoder: tokens that layers with a window look back on; 0: none has one.
[[nodiscard]] std::int64_t window_of(const model::Model& model);
/// Of a known decoder: what of its configuration is not known, empty where all is.
[[nodiscard]] std::string unknown_detail(const model::Model& model, Attention attention);

/// A decoder of transformers that is known, called with labels.
[[nodiscard]] std::unique_ptr<Program> hugging_face_program(Runtime& runtime, const model::Model& model,
                                                            const ProgramOptions& options);

}  // namespace shard::like::eager
