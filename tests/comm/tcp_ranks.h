// Ranks over TCP as threads of one process, at the loopback.
#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/tcp.h"
#include "executor/comm/tcp_socket.h"

namespace shard::test {

/// A port that nobody has just now. By the process, and none of those that the system chooses: tests that run beside
/// this one are not given it, and whoever dials it in vain does not meet itself.
inline std::uint16_t free_port() {
  static std::atomic<int> next{::getpid() * 16};
  for (int tries = 0; tries < 1000; ++tries) {
    const auto port = static_cast<std::uint16_t>(10'000 + next++ % 20'000);
    if (tcp::listen_at({"127.0.0.1", port})) return port;
  }
  return 0;
}

inline TcpPlace place_of(int rank, int world, std::uint16_t port) {
  return {.rank = Rank{rank}, .world = world, .address = "127.0.0.1", .port = port, .job = "job 17", .plan = "abcdef"};
}

using Joined = Result<std::unique_ptr<Communicator>>;

/// What each of the places comes to, all at once.
inline std::vector<Joined> join_all(const std::vector<TcpPlace>& places, CommOptions options = {}) {
  std::vector<Joined> ranks;
  for (std::size_t i = 0; i < places.size(); ++i) ranks.emplace_back(Error{});
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < places.size(); ++i)
    threads.emplace_back([&, i] { ranks[i] = make_tcp(places[i], options); });
  threads.clear();
  return ranks;
}

inline std::vector<TcpPlace> places_of(int world) {
  const std::uint16_t port = free_port();
  std::vector<TcpPlace> places;
  for (int rank = 0; rank < world; ++rank) places.push_back(place_of(rank, world, port));
  return places;
}

}  // namespace shard::test
