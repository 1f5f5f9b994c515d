// A communicator that remembers where its rank's arena is, so that a test can look at what a run left there.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "executor/comm/in_process.h"

namespace shard {

/// Passes everything on, and remembers where the arena is.
class Tap : public Communicator {
 public:
  explicit Tap(Communicator& below) : below_(below) {}
  [[nodiscard]] Rank rank() const override { return below_.rank(); }
  [[nodiscard]] int size() const override { return below_.size(); }
  [[nodiscard]] std::string_view name() const override { return below_.name(); }
  [[nodiscard]] bool needs_workspace() const override { return below_.needs_workspace(); }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override {
    auto made = below_.make_arena(bytes, limits);
    if (made) arena = *made;
    return made;
  }
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override { return below_.start(request); }
  [[nodiscard]] Result<bool> poll(Ticket ticket) override { return below_.poll(ticket); }
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket ticket) const override {
    return below_.moving_time(ticket);
  }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own) override {
    return below_.exchange(own);
  }
  void abort(std::string_view reason) override { below_.abort(reason); }

  std::span<std::byte> arena;

 private:
  Communicator& below_;
};

}  // namespace shard
