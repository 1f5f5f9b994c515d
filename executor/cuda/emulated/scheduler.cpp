// Heads of queues, and which of them is next.
#include "executor/cuda/emulated/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace shard::cuda::emulated {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::size_t Scheduler::add_stream() {
  queues_.emplace_back();
  queues_.back().priority = random_.next();
  return queues_.size() - 1;
}

void Scheduler::put(std::size_t stream, Work work) {
  queues_[stream].entries.push_back({enqueued_++, std::move(work)});
}
void Scheduler::enqueue(std::size_t stream, Step step) {
  put(stream, std::move(step));
}
void Scheduler::enqueue(std::size_t stream, std::shared_ptr<const GraphWork> graph, std::uint32_t launched) {
  put(stream, GraphRun(std::move(graph), as_enqueued_ ? nullptr : &random_, launched));
}
void Scheduler::enqueue_end(std::size_t stream, std::shared_ptr<Moment> moment) {
  put(stream, End{std::move(moment)});
}
void Scheduler::enqueue_wait(std::size_t stream, std::shared_ptr<Moment> moment) {
  put(stream, Wait{std::move(moment)});
}

bool Scheduler::can_run(Queue& queue) {
  if (queue.entries.empty()) return false;
  Work& head = queue.entries.front().work;
  if (const auto* step = std::get_if<Step>(&head)) return step->can_run();
  if (auto* graph = std::get_if<GraphRun>(&head)) return graph->finished() || graph->can_go_on();
  if (const auto* wait = std::get_if<Wait>(&head)) return wait->moment->done;
  return true;
}

Scheduler::Queue* Scheduler::next() {
  if (!as_enqueued_ && random_.below(64) == 0) {
    for (Queue& queue : queues_) queue.priority = random_.next();
  }
  Queue* best = nullptr;
  for (Queue& queue : queues_) {
    if (!can_run(queue)) continue;
    const auto comes_first = [&] {
      return as_enqueued_ ? queue.entries.front().number < best->entries.front().number
                          : queue.priority > best->priority;
    };
    if (best == nullptr || comes_first()) best = &queue;
  }
  return best;
}

std::optional<Error> Scheduler::run_head(Queue& queue) {
  Work& head = queue.entries.front().work;
  std::optional<Error> error;
  if (auto* step = std::get_if<Step>(&head)) {
    error = run_and_tell(*step, activity_, 0);
  } else if (auto* graph = std::get_if<GraphRun>(&head)) {
    if (!graph->finished()) error = graph->run_next(activity_);
    if (!graph->finished()) return error;
  } else if (auto* end = std::get_if<End>(&head)) {
    end->moment->done = true;
    end->moment->seconds = now();
  }
  queue.entries.pop_front();
  return error;
}

std::optional<Error> Scheduler::run(const Moment& until, int most) {
  for (int ran = 0; ran < most && !until.done; ++ran) {
    Queue* const queue = next();
    if (queue == nullptr) return std::nullopt;
    if (auto error = run_head(*queue)) return error;
  }
  return std::nullopt;
}

bool Scheduler::is_idle() const {
  return std::ranges::all_of(queues_, [](const Queue& queue) { return queue.entries.empty(); });
}

bool Scheduler::hangs() {
  bool planted = false;
  for (Queue& queue : queues_) {
    if (queue.entries.empty()) continue;
    if (can_run(queue)) return false;
    const Work& head = queue.entries.front().work;
    const auto* const step = std::get_if<Step>(&head);
    const auto* const graph = std::get_if<GraphRun>(&head);
    if ((step != nullptr && !step->hangs) || (graph != nullptr && graph->waits_for_others())) return false;
    planted = planted || step != nullptr || graph != nullptr;
  }
  return planted;
}

}  // namespace shard::cuda::emulated
