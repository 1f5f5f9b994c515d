// What somebody's framework does on a device, in order: memory that it takes and gives back, operators and their work,
// collectives, copies and waits. Not ours to decide, as a plan is; it is written down, kept, and asked again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/pool.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::like {

/// A queue of the device; 0 is the one that the program computes on.
using ProgramStream = std::uint32_t;

/// What is launched: who asks for memory, and what works.
struct Operator {
  plan::Name module{};  ///< "model.layers.0.mlp"; empty: of none
  plan::Name name{};    ///< "mm"
  std::int32_t block = -1;
  Part part = Part::unknown;
};

/// A block that the program asks its allocator for; taken once, and given back once or not at all.
struct Allocation {
  Bytes bytes{};        ///< as asked for
  plan::Name name{};    ///< what it holds; empty: as the operator that took it
  std::int32_t by = 0;  ///< of Program::operators
  Category category = Category::not_known;
  Memory memory = Memory::device;
  ProgramStream stream = 0;
  std::uint16_t pool = 0;  ///< 0: everybody's; others are of captured graphs and the like
};

/// A tensor that an operator reads or writes.
struct ProgramOperand {
  plan::Name type{};  ///< "bf16"
  plan::List<std::int64_t> sizes{};
  bool written = false;
};

/// What a kernel or an operator does with memory that is there; what is not known is absent.
struct Work {
  std::int32_t by = 0;  ///< of Program::operators
  plan::List<ProgramOperand> operands{};
  Flops flops{};
  Bytes bytes_read{}, bytes_written{};
  ProgramStream stream = 0;
};

/// A call of a collective; bytes are the full buffer.
struct CollectiveCall {
  Collective kind{};
  Bytes bytes{};
  std::int32_t ranks = 1;
  plan::Name group{};  ///< "data parallel"; empty: all ranks
  ProgramStream stream = 0;
};

/// Bytes from one memory to another.
struct CopyCall {
  Memory from{}, to{};
  Bytes bytes{};
  ProgramStream stream = 0;
};

/// Who waits for what a stream was given up to here: the host, or another stream.
struct WaitCall {
  bool host = false;
  ProgramStream stream = 0;  ///< that waits, where it is not the host
  ProgramStream for_stream = 0;
};

/// A point at which figures are read: as torch.cuda.max_memory_allocated() is.
struct ProgramMark {
  plan::Name name{};
  bool starts_again = false;  ///< maxima are those since the last mark, not since the program began
};

enum class StepKind : std::uint8_t {
  phase,        ///< begins
  begin,        ///< of an operator: what follows is asked for by it
  take,         ///< an allocation
  give_back,    ///< of one: the block may be used again
  let_go,       ///< of one, while another stream still uses it: it no longer counts as allocated
  work,         ///< of the operator that began last
  collective,   //
  copy,         //
  wait,         //
  mark,         //
  empty_cache,  ///< torch.cuda.empty_cache()
};
inline constexpr int kStepKindCount = 11;

/// What is done next: of what kind, and which one of it.
struct Step {
  StepKind kind{};
  std::int32_t at = 0;  ///< index in the list of its kind; of a phase its number
};

/// Who wrote a program, for people and for who asks it again.
struct ProgramOrigin {
  std::string framework{};  ///< "fsdp2@2.11", "PyTorch 2.11.0"
  std::string model{};      ///< empty: not known
  std::string steps{};      ///< which are in it, for people: "three steps"; empty: not known
  std::string allocator{};  ///< the settings that it ran under, as PYTORCH_CUDA_ALLOC_CONF has them
  std::int32_t world_size = 1;
  std::int32_t rank = 0;  ///< whose device it is
  /// Where the driver puts new memory, which decides between free blocks of one size: as most on Linux below what is
  /// there, or above it.
  bool addresses_upwards = false;
  bool all_kernels = false;  ///< CUDA loads them all at the start, not each at its first launch
  /// How far peaks of its rules were off where they were compared, in millionths; 0: it was recorded.
  std::int32_t uncertainty_ppm = 0;
};

/// Lists are in the order of the steps that name them. Copies share what names and lists point to.
struct Program {
  std::shared_ptr<plan::Pool> pool = std::make_shared<plan::Pool>();
  ProgramOrigin origin{};
  std::vector<Operator> operators{};
  std::vector<Allocation> allocations{};  ///< BufferId indexes this
  std::vector<Work> works{};
  std::vector<CollectiveCall> collectives{};
  std::vector<CopyCall> copies{};
  std::vector<WaitCall> waits{};
  std::vector<ProgramMark> marks{};
  std::vector<Step> steps{};

  [[nodiscard]] const Allocation& allocation(BufferId id) const {
    return allocations[static_cast<std::size_t>(id.value)];
  }
  [[nodiscard]] Allocation& allocation(BufferId id) { return allocations[static_cast<std::size_t>(id.value)]; }
  /// "MODULE OPERATOR".
  [[nodiscard]] std::string text_of(const Operator& op) const;
  /// The allocation's own name, or its operator's.
  [[nodiscard]] std::string name_of(const Allocation& allocation) const;
  /// Of all allocations of a category, as asked for.
  [[nodiscard]] Bytes sum_of(Category category) const;

  void begin_phase(Phase phase) { add(StepKind::phase, static_cast<std::size_t>(phase)); }
  /// What follows is asked for by `op`.
  void begin(const Operator& op) { add(StepKind::begin, keep(operators, op)); }
  /// By the operator that began last, one of which there must be.
  BufferId take(Allocation allocation);
  void give_back(BufferId id) { steps.push_back({StepKind::give_back, id.value}); }
  void let_go(BufferId id) { steps.push_back({StepKind::let_go, id.value}); }
  /// Of the operator that began last, one of which there must be.
  void work(Work work);
  void collective(const CollectiveCall& call) { add(StepKind::collective, keep(collectives, call)); }
  void copy(const CopyCall& call) { add(StepKind::copy, keep(copies, call)); }
  void wait(const WaitCall& call) { add(StepKind::wait, keep(waits, call)); }
  void mark(const ProgramMark& mark) { add(StepKind::mark, keep(marks, mark)); }
  void empty_cache() { steps.push_back({StepKind::empty_cache, 0}); }

 private:
  void add(StepKind kind, std::size_t at) { steps.push_back({kind, static_cast<std::int32_t>(at)}); }
  template <class T>
  static std::size_t keep(std::vector<T>& list, const T& element) {
    list.push_back(element);
    return list.size() - 1;
  }
};

}  // namespace shard::like
