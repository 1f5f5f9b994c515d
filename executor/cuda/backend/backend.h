// The GPU interpreter of a plan: ops enqueued on streams, ordered by the plan's edges, awaited at the end of a phase.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "executor/cpu/host_ops.h"
#include "executor/cpu/memories.h"
#include "executor/cuda/backend/flight_log.h"
#include "executor/cuda/backend/host_calls.h"
#include "executor/cuda/backend/lanes.h"
#include "executor/cuda/comm/device_communicator.h"
#include "executor/cuda/comm/device_room.h"
#include "executor/rank/backend.h"
#include "sim/ir/run.h"

namespace shard::cuda {

/// One rank's. Holds the turn of its rank (Turns) while it is called.
///
/// Every op is enqueued on the stream that the plan gives it, behind the events of its dependencies; nothing but the
/// end of a phase is waited for. Operators run as kernels and products; what steers the run, loads data or works on
/// host memory runs on the host, in its stream's order. acquire and release keep the arena's books in plan order;
/// nothing is allocated while training. Steady steps are captured as a graph once and launched again, where the room
/// has one and nobody asks for the times of ops. The end of a phase is polled: where no stream of a rank of this
/// process and nothing on its host moves for the deadline, what hangs is named.
class Backend final : public executor::RankBackend {
 public:
  /// Makes the arenas, the device's in `communicator`. All that it refers to outlives it. Collective: every rank of the
  /// device does the same. Errors: does_not_fit, unavailable, cannot_create.
  [[nodiscard]] static Result<std::unique_ptr<Backend>> make(DeviceRoom& room, const plan::Plan& plan,
                                                             DeviceCommunicator& communicator, DataSource& data,
                                                             cpu::ThreadPool& pool,
                                                             const executor::BackendOptions& options,
                                                             const std::string& disk_path);
  ~Backend() override;

  [[nodiscard]] Result<void> run(const plan::PhaseOps& phase) override;
  [[nodiscard]] Result<void> begin_phase(const plan::PhaseOps& phase);
  [[nodiscard]] Result<void> acquire(const plan::Op& op, std::span<const BufferId> buffers);
  [[nodiscard]] Result<void> issue(const plan::Op& op);
  [[nodiscard]] Result<void> release(const plan::Op& op, std::span<const BufferId> buffers);
  [[nodiscard]] Result<void> poll() { return {}; }
  [[nodiscard]] Result<void> end_phase(const plan::PhaseOps& phase);

  /// The run ends with this error: transfers end, and where it may be that the device hangs nothing is freed any more.
  /// Before the destructor, which waits for the device.
  void give_up(const Error& error);

  void set_step(std::int64_t step) override;
  void set_learning_rate(double rate) override { host_ops_->set_learning_rate(rate); }
  [[nodiscard]] float loss() const override { return shown_->loss; }
  [[nodiscard]] std::optional<plan::ControlBlock> control() const override;
  [[nodiscard]] const executor::Health& health() const override { return host_ops_->health(); }
  [[nodiscard]] const executor::Books& books() const override { return books_; }
  [[nodiscard]] const executor::CommunicationTime& communication_time() const override { return communication_time_; }
  [[nodiscard]] const StateDigest& digest() const override { return host_ops_->digest(); }

 private:
  /// Pinned: what the host shows the device and the device the host, once a phase.
  struct Shown {
    std::int64_t step = 0;
    plan::ControlBlock control{};
    float loss = 0;
  };
  /// When an op began and ended, where somebody asks for it.
  struct Timed {
    const plan::Op* op = nullptr;
    Event begin = nullptr;
    Event end = nullptr;
  };

  Backend(DeviceRoom& room, const plan::Plan& plan, DeviceCommunicator& communicator,
          const executor::BackendOptions& options);
  [[nodiscard]] Result<void> prepare(DataSource& data, cpu::ThreadPool& pool, const executor::BackendOptions& options,
                                     const std::string& disk_path);
  [[nodiscard]] Result<void> prepare_events();
  /// A step as a graph: enqueued into one by plan::run, or as it was, with the books kept.
  [[nodiscard]] Result<void> capture(const plan::PhaseOps& phase);
  [[nodiscard]] Result<void> replay(const plan::PhaseOps& phase);
  [[nodiscard]] Result<void> keep_books(const plan::PhaseOps& phase);
  [[nodiscard]] Result<void> launch(const plan::PhaseOps& phase);
  void start_phase();
  [[nodiscard]] std::byte* at(const plan::Operand& operand) const;
  [[nodiscard]] Elements elements(const plan::Operand& operand) const {
    return {at(operand), plan_.buffer(operand.buffer).dtype};
  }
  [[nodiscard]] std::int64_t count(const plan::Operand& operand) const {
    return operand.bytes / bytes_per_element(plan_.buffer(operand.buffer).dtype);
  }
  [[nodiscard]] Result<void> wait_for_dependencies(const plan::Op& op, Stream stream);
  [[nodiscard]] Result<void> enqueue(const plan::Op& op, const Lane& lane);
  [[nodiscard]] Result<void> enqueue_on_device(const plan::Op& op, const Lane& lane);
  [[nodiscard]] Result<void> compute_op(const plan::Op& op, const plan::Compute& c, Stream stream);
  [[nodiscard]] Result<void> collective(const plan::Op& op, const plan::Communicate& call);
  void optimizer_step(const plan::Op& op, const plan::OptimizerStep& a, Stream stream);
  void inspect(const plan::Op& op, const plan::InspectGradient& a, Stream stream);
  /// What the op's kernels touch: operands in memory that the device sees, and the number of the step.
  [[nodiscard]] std::span<const Range> ranges_of(const plan::Op& op, const Lane& lane);
  /// The stream has come behind op number `place` of the phase.
  [[nodiscard]] Result<void> mark(const plan::Op& op, const Lane& lane, std::int32_t place);
  [[nodiscard]] Result<void> join_lanes(const plan::PhaseOps& phase);
  [[nodiscard]] Result<void> wait_for_end(const plan::PhaseOps& phase);
  /// Whether a stream got to another op since the last question, told to all who wait.
  void note_progress();
  [[nodiscard]] Error hang(const plan::PhaseOps& phase) const;
  /// An error met while waiting: beside the rank, which op had not ended.
  [[nodiscard]] Error with_place(Error error) const;
  /// Of the phase that runs.
  [[nodiscard]] std::optional<Stuck> stuck() const;
  [[nodiscard]] Result<void> report_times();

  DeviceRoom& room_;
  const plan::Plan& plan_;
  Bytes product_alignment_;
  DeviceCommunicator& communicator_;
  plan::Position position_;
  executor::Observer* observer_;
  bool times_ops_;
  std::int64_t enqueued_since_ns_ = 0;
  std::uint64_t seed_;
  Births births_;
  executor::Books books_;
  Lanes lanes_;
  FlightLog flight_log_;
  std::span<std::byte> pinned_arena_{};
  cpu::Memories memories_;
  std::unique_ptr<cpu::HostOps> host_ops_;
  std::unique_ptr<HostCalls> host_calls_;
  std::int64_t* step_word_ = nullptr;  ///< on the device
  Shown* shown_ = nullptr;
  std::unordered_map<std::int32_t, Event> event_of_;  ///< by id of the ops that other streams wait for
  Event begin_ = nullptr;
  std::int64_t begin_ns_ = 0;
  std::int64_t ended_ = 0;  ///< what the lanes' words last came to
  bool capturing_ = false;
  CollectiveTotals captured_calls_{};  ///< of the graph, this rank's
  std::vector<Timed> timed_;
  std::vector<Event> spare_events_;
  std::vector<Range> ranges_;          ///< scratch
  std::vector<CommSegment> segments_;  ///< scratch
  std::int32_t place_ = 0;             ///< of the next op in its phase
  const plan::PhaseOps* phase_ = nullptr;
  executor::CommunicationTime communication_time_;
};

}  // namespace shard::cuda
