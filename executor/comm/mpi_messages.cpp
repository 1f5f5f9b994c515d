// A port over MPI: messages in a pool of requests, aborts by message, dead peers of the own host.
#include "executor/comm/mpi_messages.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/comm/messages.h"
#include "executor/comm/peer_watch.h"
#include "executor/comm/validate.h"
#include "traces/base/run_place.h"

namespace shard {
namespace {

constexpr int kAbortTag = 1;
constexpr std::size_t kReasonBytes = 1000;
constexpr std::chrono::milliseconds kWatchEvery{1};

class MpiPort final : public MessagePort {
 public:
  MpiPort(std::shared_ptr<MpiRuntime> runtime, PeerWatch watch, std::vector<std::int32_t> processes)
      : runtime_(std::move(runtime)), watch_(std::move(watch)), processes_(std::move(processes)) {
    const BlockingCall call("MPI_Comm_dup");
    MPI_Comm_dup(runtime_->world(), &control_);
    int* largest_tag = nullptr;
    int given = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &given);
    if (given != 0) tag_bits_ = static_cast<int>(std::bit_width(static_cast<unsigned>(*largest_tag))) - 1;
  }

  [[nodiscard]] Rank rank() const override { return runtime_->rank(); }
  [[nodiscard]] int size() const override { return runtime_->size(); }
  [[nodiscard]] std::string_view name() const override { return "mpi-messages"; }
  [[nodiscard]] int tag_bits() const override { return tag_bits_; }

  [[nodiscard]] MessageId send(Rank to, int tag, const std::byte* at, std::int64_t bytes) override {
    const MessageId id = take();
    MPI_Isend(at, static_cast<int>(bytes), MPI_BYTE, to.value, tag, runtime_->world(), &requests_[id]);
    return id;
  }
  [[nodiscard]] MessageId receive(Rank from, int tag, std::byte* at, std::int64_t bytes) override {
    const MessageId id = take();
    MPI_Irecv(at, static_cast<int>(bytes), MPI_BYTE, from.value, tag, runtime_->world(), &requests_[id]);
    return id;
  }
  [[nodiscard]] Result<bool> progress() override { return false; }
  [[nodiscard]] Result<bool> finish(MessageId id) override {
    int done = 0;
    if (const int code = MPI_Test(&requests_[id], &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
      return mpi_error(code, "MPI_Test", rank());
    if (done != 0) free_.push_back(id);
    return done != 0;
  }
  [[nodiscard]] bool is_complete(MessageId id) const override {
    int done = 0;
    MPI_Request_get_status(requests_[id], &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own,
                                                          std::chrono::milliseconds deadline) override {
    return runtime_->exchange(own, until_deadline(deadline, rank(), "an exchange", [this]() -> Result<void> {
                                if (std::optional<Error> bad = news()) return std::move(*bad);
                                return {};
                              }));
  }
  void abort(std::string_view reason) override;
  [[nodiscard]] std::optional<Error> news() override;
  [[nodiscard]] std::optional<Error> lost_peer() override;
  void leave(bool properly) override {
    if (!properly) return runtime_->abandon();
    const BlockingCall call("MPI_Comm_free");
    MPI_Comm_free(&control_);
  }

 private:
  MessageId take() {
    if (free_.empty()) {
      requests_.push_back(MPI_REQUEST_NULL);
      return static_cast<MessageId>(requests_.size() - 1);
    }
    const MessageId id = free_.back();
    free_.pop_back();
    return id;
  }

  std::shared_ptr<MpiRuntime> runtime_;
  PeerWatch watch_;
  std::vector<std::int32_t> processes_;
  MPI_Comm control_ = MPI_COMM_NULL;  ///< aborts travel here
  int tag_bits_ = 15;
  std::vector<MPI_Request> requests_;  ///< by id
  std::vector<MessageId> free_;
  std::array<char, kReasonBytes> reason_{};
  std::vector<MPI_Request> abort_sends_;
  std::chrono::steady_clock::time_point next_watch_{};
};

std::optional<Error> MpiPort::news() {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, control_, &there, &status);
  if (there != 0) {
    std::array<char, kReasonBytes + 1> reason{};
    MPI_Recv(reason.data(), kReasonBytes, MPI_CHAR, status.MPI_SOURCE, kAbortTag, control_, MPI_STATUS_IGNORE);
    return Error{Errc::retryable, rank_name(Rank{status.MPI_SOURCE}) + " stopped: " + reason.data(), "", ""};
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_watch_) return std::nullopt;
  next_watch_ = now + kWatchEvery;
  return lost_peer();
}

std::optional<Error> MpiPort::lost_peer() {
  const std::vector<Rank> ended = watch_.ended();
  if (ended.empty()) return std::nullopt;
  return Error{Errc::retryable,
               rank_name(ended[0]) + " died (process " +
                   std::to_string(processes_[static_cast<std::size_t>(ended[0].value)]) + " is gone)",
               "", "run again"};
}

void MpiPort::abort(std::string_view reason) {
  if (!abort_sends_.empty()) return;
  const std::size_t bytes = std::min(reason.size(), reason_.size());
  std::copy_n(reason.data(), bytes, reason_.data());
  abort_sends_.resize(static_cast<std::size_t>(size()), MPI_REQUEST_NULL);
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank().value)
      MPI_Isend(reason_.data(), static_cast<int>(bytes), MPI_CHAR, peer, kAbortTag, control_,
                &abort_sends_[static_cast<std::size_t>(peer)]);
  // Small messages leave at once; a peer that is gone must not hold this rank.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{200};
  int done = 0;
  while (done == 0 && std::chrono::steady_clock::now() < end)
    MPI_Testall(static_cast<int>(abort_sends_.size()), abort_sends_.data(), &done, MPI_STATUSES_IGNORE);
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_mpi_messages(std::shared_ptr<MpiRuntime> runtime, CommOptions options) {
  // Processes can be watched only from their own host.
  int host_size = 0;
  MPI_Comm_size(runtime->host(), &host_size);
  const std::int32_t own[2] = {runtime->rank().value, getpid()};
  std::vector<std::int32_t> pairs(2 * static_cast<std::size_t>(host_size));
  {
    const BlockingCall call("MPI_Allgather");
    MPI_Allgather(own, 2, MPI_INT32_T, pairs.data(), 2, MPI_INT32_T, runtime->host());
  }
  std::vector<std::int32_t> processes(static_cast<std::size_t>(runtime->size()));
  for (std::size_t i = 0; i < pairs.size(); i += 2) processes[static_cast<std::size_t>(pairs[i])] = pairs[i + 1];
  return make_messages(std::make_unique<MpiPort>(std::move(runtime), PeerWatch(processes), processes), options);
}

}  // namespace shard
