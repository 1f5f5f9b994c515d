// Runs what is on streams, in one of the orders that CUDA leaves open.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "executor/cuda/emulated/graph.h"
#include "executor/cuda/emulated/random.h"
#include "executor/cuda/emulated/work.h"

namespace shard::cuda::emulated {

/// Each stream has a priority drawn from a seed, the head of the highest runs, and priorities are drawn anew at about
/// every 64th piece of work: behind a long queue, an even choice among heads would never bring up an order that a
/// missing wait allows. Or everything runs in the order in which it was enqueued.
class Scheduler {
 public:
  /// `activity` may be null; else it outlives this.
  Scheduler(std::uint64_t seed, bool as_enqueued, EmulatedActivity* activity)
      : random_(seed), as_enqueued_(as_enqueued), activity_(activity) {}

  /// Its number.
  std::size_t add_stream();

  void enqueue(std::size_t stream, Step step);
  /// `launched`: the number of the call.
  void enqueue(std::size_t stream, std::shared_ptr<const GraphWork> graph, std::uint32_t launched);
  /// What the moment stands for is finished when the stream comes here.
  void enqueue_end(std::size_t stream, std::shared_ptr<Moment> moment);
  /// The stream goes on when the moment is done.
  void enqueue_wait(std::size_t stream, std::shared_ptr<Moment> moment);

  /// Runs until the moment is done, nothing can run, something fails, or `most` pieces of work ran.
  std::optional<Error> run(const Moment& until, int most);
  [[nodiscard]] bool is_idle() const;
  /// Whether it ran all that does not wait for a planted hang, or for an event behind one.
  [[nodiscard]] bool hangs();

 private:
  struct End {
    std::shared_ptr<Moment> moment;
  };
  struct Wait {
    std::shared_ptr<Moment> moment;
  };
  using Work = std::variant<Step, GraphRun, End, Wait>;
  struct Entry {
    std::int64_t number = 0;
    Work work;
  };
  struct Queue {
    std::deque<Entry> entries;
    std::uint64_t priority = 0;
  };
  void put(std::size_t stream, Work work);
  static bool can_run(Queue& queue);
  Queue* next();
  std::optional<Error> run_head(Queue& queue);

  Random random_;
  bool as_enqueued_;
  EmulatedActivity* activity_;
  std::int64_t enqueued_ = 0;
  std::vector<Queue> queues_;
};

}  // namespace shard::cuda::emulated
