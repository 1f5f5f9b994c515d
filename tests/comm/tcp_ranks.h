// Ranks over TCP as threads of one process, at the loopback.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/tcp.h"
#include "executor/comm/tcp_socket.h"

namespace shard::test {

/// A port that nobody has just now.
inline std::uint16_t free_port() {
  const Result<tcp::Socket> listener = tcp::listen_at({"127.0.0.1", 0});
  return listener ? tcp::own_port(*listener) : 0;
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
