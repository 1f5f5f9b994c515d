// Training runs whose ranks are threads of this process.
#include "executor/train/in_process_run.h"

#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace shard::train {

Result<std::vector<SessionResult>> run_in_process(const plan::PlanSet& plans,
                                                  std::span<const std::unique_ptr<Communicator>> communicators,
                                                  const std::string& data, const BatchShape& shape,
                                                  const SessionOf& session_of) {
  std::vector<SessionResult> results(communicators.size());
  std::mutex mutex;
  std::optional<Error> first;
  const auto rank_main = [&](std::size_t rank) {
    const auto number = static_cast<std::int32_t>(rank);
    const plan::Plan& plan = plans.of_rank(number);
    Communicator& communicator = *communicators[rank];
    const SessionOptions options = session_of(number);
    const auto source = open_data(data, *plan.model, shape);
    cpu::ThreadPool pool(plan.target.threads);
    Result<SessionResult> result =
        source ? run_session(plan, communicator, **source, pool, options) : Result<SessionResult>(source.error());
    if (result) {
      results[rank] = std::move(*result);
      return;
    }
    {
      // Before the others are told: what this rank's end makes of them is no news.
      const std::lock_guard lock(mutex);
      if (!first) first = result.error();
    }
    communicator.abort(to_string(result.error()));
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < communicators.size(); ++rank) threads.emplace_back(rank_main, rank);
  }
  if (first) return *first;
  return results;
}

}  // namespace shard::train
