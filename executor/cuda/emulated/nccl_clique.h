// The ranks of one emulated NCCL communicator: what each has brought to transfers, and whether calls match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/cuda/api/nccl.h"

namespace shard::cuda::emulated {

enum class TransferKind { all_gather, reduce_scatter, all_reduce, broadcast, reduce, send, receive };

[[nodiscard]] constexpr const char* to_string(TransferKind kind) {
  switch (kind) {
    case TransferKind::all_gather: return "all_gather";
    case TransferKind::reduce_scatter: return "reduce_scatter";
    case TransferKind::all_reduce: return "all_reduce";
    case TransferKind::broadcast: return "broadcast";
    case TransferKind::reduce: return "reduce";
    case TransferKind::send: return "send";
    case TransferKind::receive: return "receive";
  }
  return "?";
}

/// One call as a rank made it; null where it has nothing to give or to take.
struct Transfer {
  TransferKind kind = TransferKind::send;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::int64_t count = 0;  ///< as Nccl has it
  Dtype dtype = Dtype::f32;
  std::int32_t peer = 0;  ///< or root
  [[nodiscard]] std::int64_t in_bytes(int ranks) const;
  [[nodiscard]] std::int64_t out_bytes(int ranks) const;
};

using Content = std::vector<std::byte>;

/// Touched by the threads of all its ranks.
class Clique {
 public:
  explicit Clique(int ranks) : ranks_(ranks), joined_(static_cast<std::size_t>(ranks)), next_round_(joined_.size()) {}

  [[nodiscard]] int ranks() const { return ranks_; }
  /// Errc::internal where the rank is none, or has joined.
  [[nodiscard]] Result<void> join(int rank);
  void leave() { count(left_); }
  [[nodiscard]] bool all_joined() const { return is_all(present_); }
  [[nodiscard]] bool all_left() const { return is_all(left_); }
  /// That calls of two ranks differ, told to all.
  [[nodiscard]] std::optional<Error> error() const;

  /// What a rank's transfer waits for.
  struct Place {
    std::pair<int, int> way{-1, -1};  ///< from and to; none: of all
    std::int64_t number = 0;
  };
  /// The rank's stream has come to the transfer; `in` is what it brings.
  [[nodiscard]] Place arrive(int rank, const Transfer& transfer, Content in);
  [[nodiscard]] bool all_there(const Place& place) const;
  /// What the rank gets, once all are there; empty: nothing.
  [[nodiscard]] Content take(int rank, const Transfer& transfer, const Place& place);

 private:
  struct Message {
    std::optional<Transfer> sent{};
    std::optional<Transfer> received{};
    Content content{};
    int taken = 0;
  };
  struct Round {
    std::vector<std::optional<Transfer>> calls{};
    std::vector<Content> in{};
    int arrived = 0;
    int taken = 0;
  };
  void count(int& number);
  [[nodiscard]] bool is_all(const int& number) const;
  void differ(const std::string& one, const std::string& other);
  [[nodiscard]] Content result(int rank, const Transfer& transfer, const Round& round) const;
  [[nodiscard]] Content sum(const Round& round, Dtype dtype) const;

  const int ranks_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<bool> joined_;
  int present_ = 0;
  int left_ = 0;
  std::optional<Error> error_;
  std::vector<std::int64_t> next_round_;
  std::map<std::int64_t, Round> rounds_;
  std::map<std::pair<int, int>, std::pair<std::int64_t, std::int64_t>> next_message_;  // sent and received
  std::map<std::pair<int, int>, std::map<std::int64_t, Message>> messages_;
};

/// Of a process.
class NcclWorld {
 public:
  [[nodiscard]] NcclId make_id();
  /// Of this id; made by who asks first. Errc::internal where it is for another number of ranks.
  [[nodiscard]] Result<std::shared_ptr<Clique>> clique(const NcclId& id, int ranks);

 private:
  std::mutex mutex_;
  int ids_ = 0;
  std::map<std::string, std::shared_ptr<Clique>> cliques_;
};

}  // namespace shard::cuda::emulated
