// Writes down what Gemini does with its chunks, as ops of a plan over planned buffers. The rules decide, this records.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/chunk/layout.h"
#include "sim/ir/plan.h"
#include "sim/like/gemini_step.h"
#include "sim/like/passes.h"

namespace shard::like {

/// Where a shard or a whole chunk rests.
enum class Home : std::uint8_t { nowhere, device, host };

/// One chunk: its 16-bit payload, which holds parameters, then their gradients, and its fp32 masters.
/// Each function appends its ops with what they take and give back, in the order in which the peer allocates and frees;
/// nothing is left to find_lifetimes(), since payloads live across phases and change memories.
class ChunkOps {
 public:
  /// What this rank keeps of a chunk.
  struct Kept {
    Elems elems{};      ///< size of the part that rests somewhere: a shard, or the chunk
    Elems real{};       ///< of these not padding
    bool owned = true;  ///< false: the rank is only ever sent it, and has no masters
  };
  ChunkOps(GeminiStep step, const ChunkLayout& layout, std::int32_t world_size, const std::vector<Kept>& kept);

  [[nodiscard]] const GeminiStep& step() const { return step_; }
  [[nodiscard]] std::size_t chunks() const { return chunks_.size(); }
  /// The full chunk stands beside its shard's place (all_gather).
  [[nodiscard]] bool gathered(std::size_t c) const { return chunks_[c].gathered; }
  [[nodiscard]] bool owned(std::size_t c) const { return chunks_[c].owned; }
  [[nodiscard]] Home rest(std::size_t c) const { return chunks_[c].rest; }
  [[nodiscard]] Home master(std::size_t c) const { return chunks_[c].master_rest; }

  void begin_phase(Phase phase);
  void mark(std::string name);

  /// Built on the host in full, 16 bits and fp32, each copied to the device and cut there; the cut rests where said.
  void build_through_device(std::size_t c, Home rest);
  /// Built where it rests.
  void build(std::size_t c, Home rest);
  void move_master(std::size_t c, Home to);

  /// The op of the model between a pre_op and its post_op, and those before it that touch no parameter.
  void run_until(std::size_t op);
  void run_to_end() { run_until(model_.size()); }

  void all_gather(std::size_t c);
  /// Gathered to this rank's part, without communication.
  void scatter(std::size_t c);
  void reduce_scatter(std::size_t c);
  void all_reduce(std::size_t c);
  void move(std::size_t c, Home to);
  /// The fp32 masters cross the bus and are cast on the device.
  void refresh_through_device(std::size_t c);

  void broadcast(std::size_t c, std::int32_t owner);
  void reduce(std::size_t c, std::int32_t owner);
  /// Frees what a rank that does not own the chunk was sent.
  void drop(std::size_t c);

  /// Steps this rank's part where it rests; Adam's state is born in the first.
  void step_optimizer(std::size_t c);
  /// 16 bits from the masters, both in one memory.
  void refresh(std::size_t c);

  [[nodiscard]] plan::Plan finish(std::vector<Mark>& marks);

 private:
  struct Chunk {
    std::string name{};
    Bytes full{};
    Bytes rest_bytes{};
    Bytes master_bytes{};
    Elems real{};
    bool owned = true;
    BufferId gathered_buffer{}, device{}, host{}, master_device{}, master_host{};
    bool gathered = false;
    Home rest = Home::nowhere;
    Home master_rest = Home::nowhere;
    bool has_state = false;
  };
  /// Where a parameter lies.
  struct Slice {
    std::size_t chunk = 0;
    std::int64_t offset = 0;  ///< bytes
  };

  [[nodiscard]] BufferId payload(const Chunk& c) const;
  void emit(std::string name, plan::Part part, plan::Action action, std::vector<plan::Operand> operands,
            std::vector<BufferId> acquire, std::vector<BufferId> release, Stream stream);
  void communicate(Collective kind, std::size_t c, plan::Part part, BufferId shard, BufferId full,
                   std::vector<BufferId> acquire, std::vector<BufferId> release, std::int32_t root = 0);
  BufferId temporary(std::string name, Memory memory, Dtype dtype, Bytes bytes);

  GeminiStep step_;
  plan::Plan plan_;
  std::vector<plan::Op> model_;  ///< the step's ops
  std::vector<Chunk> chunks_;
  std::vector<Slice> slices_;  ///< by parameter
  std::vector<plan::Op>* ops_ = nullptr;
  std::size_t done_ = 0;
  std::vector<Mark> marks_;
};

}  // namespace shard::like
