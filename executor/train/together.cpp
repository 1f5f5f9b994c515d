// A rank that works tells the others that it does, ten times a second.
#include "executor/train/together.h"

#include <array>
#include <chrono>
#include <future>
#include <string_view>

#include "traces/base/stop.h"

namespace shard::train {
namespace {

/// How long a rank works before it tells the others again that it does.
constexpr std::chrono::milliseconds kBeat{100};

constexpr char kBusy = 'b';
constexpr char kDone = 'd';
constexpr char kFailed = 'f';

/// An error as a text, for other ranks.
constexpr char kSeparator = '\x1f';
std::string packed(const Error& e) {
  return std::to_string(static_cast<int>(e.code)) + kSeparator + e.what + kSeparator + e.where + kSeparator + e.help;
}
Error unpacked(std::string_view text) {
  std::array<std::string, 4> parts;
  for (std::string& part : parts) {
    const std::size_t end = std::min(text.find(kSeparator), text.size());
    part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {static_cast<Errc>(std::stoi(parts[0])), parts[1], parts[2], parts[3]};
}

}  // namespace

Result<std::vector<std::string>> together(Communicator& communicator,
                                          const std::function<Result<std::string>()>& work) {
  std::future<Result<std::string>> own = std::async(std::launch::async, work);
  std::string said(1, kBusy);
  while (true) {
    if (own.valid() && own.wait_for(kBeat) == std::future_status::ready) {
      const Result<std::string> done = own.get();
      said = done ? kDone + *done : kFailed + packed(done.error());
    }
    {
      // A process that is being stopped removes the draft under its ranks' hands. What they say of that is no news: the
      // others are to see it go.
      const stop::NotNow not_stopped;
    }
    Result<std::vector<std::string>> all = communicator.exchange(said);
    if (!all) return all.error();  // the future waits for its thread
    bool busy = false;
    for (const std::string& each : *all) busy = busy || each.front() == kBusy;
    if (busy) continue;
    for (std::size_t rank = 0; rank < all->size(); ++rank)
      if (const std::string& each = (*all)[rank]; each.front() == kFailed) {
        Error error = unpacked(std::string_view(each).substr(1));
        if (all->size() > 1) error.what = "rank " + std::to_string(rank) + ": " + error.what;
        return error;
      }
    for (std::string& each : *all) each.erase(0, 1);
    return all;
  }
}

}  // namespace shard::train
