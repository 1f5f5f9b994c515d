// One thread per rank, one poll loop each: whoever comes is read byte by byte until its greeting is whole.
#include "executor/comm/tcp_rendezvous.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "executor/comm/validate.h"
#include "traces/base/deadline.h"

namespace shard::tcp {
namespace {

/// Connections that have not greeted yet: a stray one may stay silent for ever, and is closed when so many are newer.
constexpr std::size_t kMostSilent = 256;
constexpr int kLookMilliseconds = 50;

std::string in_words(int ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

/// One rank's way to all others.
class Meeting {
 public:
  Meeting(const TcpPlace& place, std::chrono::milliseconds deadline)
      : place_(place),
        deadline_(deadline),
        end_(Clock::now() + deadline),
        ranks_(static_cast<std::size_t>(place.world)),
        greeting_{
            .job = hash_of(place.job), .plan = hash_of(place.plan), .rank = place.rank.value, .world = place.world} {}

  [[nodiscard]] Result<void> lead();
  [[nodiscard]] Result<void> follow();
  [[nodiscard]] std::vector<Socket> take() { return std::move(ranks_); }
  /// Tells whoever has come.
  void give_up(const Error& error) const;

 private:
  struct Silent {
    Socket socket;
    std::array<std::byte, kGreetingBytes> said{};
    std::size_t bytes = 0;
  };
  struct Refusal {
    Errc code = Errc::unavailable;
    std::string why;
    bool ends_the_run = false;
  };

  [[nodiscard]] Socket& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Result<void> open(const Endpoint& where, const std::string& help);
  /// Takes in those above this rank until all are there.
  [[nodiscard]] Result<void> wait_for_higher();
  [[nodiscard]] Result<void> look_at_those_that_came() const;
  void accept_all();
  [[nodiscard]] Result<void> hear(Silent& silent);
  [[nodiscard]] Result<void> judge(Silent& silent, const Greeting& greeting);
  [[nodiscard]] std::optional<Refusal> refusal_of(const Greeting& greeting);
  [[nodiscard]] std::vector<int> missing() const;
  [[nodiscard]] Error not_come() const;
  /// Connects to a lower rank and makes sure that it is the one.
  [[nodiscard]] Result<void> visit(int rank, const Endpoint& where);
  [[nodiscard]] Error refused(const Frame& answer, const std::string& who) const;

  const TcpPlace& place_;
  std::chrono::milliseconds deadline_;
  Clock::time_point end_;
  std::vector<Socket> ranks_;
  Greeting greeting_;
  Socket listener_;
  std::vector<Endpoint> listening_;  ///< rank 0: where the others are
  std::vector<Silent> silent_;
  std::string turned_away_;  ///< the last one
};

Result<void> Meeting::open(const Endpoint& where, const std::string& help) {
  Result<Socket> listener = listen_at(where);
  if (!listener) {
    Error error = listener.error();
    if (error.help.empty()) error.help = help;
    return error;
  }
  listener_ = std::move(*listener);
  greeting_.port = own_port(listener_);
  return {};
}

Result<void> Meeting::lead() {
  if (Result<void> r = open({place_.address, place_.port},
                            "SHARDSCOPE_PORT=N, a free port, for all ranks; or end what listens there");
      !r)
    return r;
  listening_.resize(ranks_.size());
  if (Result<void> r = wait_for_higher(); !r) return r;
  const std::string table = frame(FrameHead::table, write_table(listening_));
  for (int rank = 1; rank < place_.world; ++rank)
    if (!send_now(of(rank), table))
      return Error{Errc::retryable, rank_name(Rank{rank}) + " died (its connection ended)", "", "run again"};
  return {};
}

Result<void> Meeting::follow() {
  const Endpoint first{place_.address, place_.port};
  const std::string who = "rank 0 at " + text_of(first);
  // Before rank 0 tells the others where this is.
  if (place_.rank.value + 1 < place_.world)
    if (Result<void> r = open({names_loopback(place_.address) ? place_.address : "", 0}, ""); !r) return r;
  if (Result<void> r = visit(0, first); !r) return r;
  const Clock::time_point later = end_ + kHeadStart;
  const Result<Frame> table = receive_frame(of(0), later, who);
  if (!table && Clock::now() >= later)
    return Error{Errc::retryable, "not all ranks have come to " + who + " within " + in_seconds(deadline_), "",
                 kLookAtThatRank};
  if (!table) return table.error();
  if (table->head.kind != FrameHead::table) return refused(*table, who);
  const Result<std::vector<Endpoint>> ranks = read_table(table->text, place_.world);
  if (!ranks) return ranks.error();
  for (int rank = 1; rank < place_.rank.value; ++rank) {
    Endpoint where = (*ranks)[static_cast<std::size_t>(rank)];
    if (where.address.empty()) where.address = peer_of(of(0)).address;
    if (Result<void> r = visit(rank, where); !r) return r;
  }
  return wait_for_higher();
}

Error Meeting::refused(const Frame& answer, const std::string& who) const {
  if (answer.head.kind == FrameHead::abort) return {Errc::retryable, "rank 0 stopped: " + answer.text, "", ""};
  if (answer.head.kind != FrameHead::refused)
    return {Errc::unavailable, who + " answers out of turn", "", "start all ranks with the same program"};
  const bool other = answer.head.tag == exit_code(Errc::contradiction);
  return {other ? Errc::contradiction : Errc::unavailable, who + " refuses this rank: " + answer.text, "",
          other ? "start all ranks with the same options, the same program and the same number of ranks"
                : "another MASTER_PORT, or SHARDSCOPE_PORT, for each run"};
}

Result<void> Meeting::visit(int rank, const Endpoint& where) {
  const std::string who = rank_name(Rank{rank}) + " at " + text_of(where);
  Result<Socket> socket = dial(where, end_, who);
  if (!socket) return socket.error();
  if (!send_now(*socket, bytes_of(greeting_)))
    return Error{Errc::retryable, who + " died (its connection ended)", "", "run again"};
  const Result<Frame> answer = receive_frame(*socket, end_ + kHeadStart, who);
  if (!answer && answer.error().code == Errc::retryable)
    return Error{Errc::retryable,
                 who + (Clock::now() < end_ ? " ended the connection without a word"
                                            : " has not answered within " + in_seconds(deadline_)),
                 "", "if another program listens there: SHARDSCOPE_PORT=N, a free port, for all ranks"};
  if (!answer) return answer.error();
  if (answer->head.kind != FrameHead::welcome) return refused(*answer, who);
  const std::optional<Greeting> theirs = read_greeting(std::as_bytes(std::span(answer->text)));
  if (!theirs || theirs->rank != rank || theirs->job != greeting_.job)
    return Error{Errc::unavailable, who + " is of another run", "",
                 "another MASTER_PORT, or SHARDSCOPE_PORT, for each run"};
  of(rank) = std::move(*socket);
  return {};
}

std::vector<int> Meeting::missing() const {
  std::vector<int> ranks;
  for (int rank = place_.rank.value + 1; rank < place_.world; ++rank)
    if (!ranks_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
  return ranks;
}

Error Meeting::not_come() const {
  std::string text = ranks_have(missing()) + " not come";
  if (place_.rank.value == 0) text += " to " + text_of({place_.address, place_.port});
  text += " within " + in_seconds(deadline_);
  if (!turned_away_.empty()) text += "; turned away: " + turned_away_;
  return {Errc::retryable, text, "", kLookAtThatRank};
}

Result<void> Meeting::wait_for_higher() {
  std::vector<pollfd> descriptors;
  while (!missing().empty()) {
    if (Clock::now() >= end_) return not_come();
    descriptors.assign({{listener_.get(), POLLIN, 0}});
    for (const Silent& silent : silent_) descriptors.push_back({silent.socket.get(), POLLIN, 0});
    for (const Socket& come : ranks_)
      if (come.is_open()) descriptors.push_back({come.get(), POLLIN, 0});
    ::poll(descriptors.data(), descriptors.size(), kLookMilliseconds);
    accept_all();
    for (Silent& silent : silent_)
      if (Result<void> r = hear(silent); !r) return r;
    std::erase_if(silent_, [](const Silent& silent) { return !silent.socket.is_open(); });
    if (Result<void> r = look_at_those_that_came(); !r) return r;
  }
  return {};
}

/// Nothing is said before all are there, but that one stops.
Result<void> Meeting::look_at_those_that_came() const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].is_open()) continue;
    char first = 0;
    const ssize_t there = recv(ranks_[rank].get(), &first, 1, MSG_PEEK);
    if (there < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    const std::string who = rank_name(Rank{static_cast<std::int32_t>(rank)});
    const Result<Frame> frame = receive_frame(ranks_[rank], end_, who);
    if (!frame) return frame.error();
    if (frame->head.kind == FrameHead::abort || frame->head.kind == FrameHead::refused)
      return Error{Errc::retryable, who + " stopped: " + frame->text, "", ""};
    return Error{Errc::internal, who + " speaks out of turn", "", ""};
  }
  return {};
}

void Meeting::accept_all() {
  constexpr int kMostInTurn = 64;
  for (int come = 0; come < kMostInTurn; ++come) {
    Socket socket = accept_from(listener_);
    if (!socket.is_open()) return;
    if (silent_.size() >= kMostSilent) silent_.erase(silent_.begin());
    silent_.push_back({std::move(socket)});
  }
}

Result<void> Meeting::hear(Silent& silent) {
  const ssize_t got =
      recv(silent.socket.get(), silent.said.data() + silent.bytes, silent.said.size() - silent.bytes, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got > 0) silent.bytes += static_cast<std::size_t>(got);
  const std::optional<Greeting> greeting = read_greeting(silent.said);
  const bool wrong = silent.bytes >= sizeof(Greeting::magic) && !greeting;
  if (got <= 0 || wrong) {
    const PeerName peer = peer_of(silent.socket);
    turned_away_ = text_of({peer.address, peer.port}) + ", which is no rank of this program";
    silent.socket = Socket();
    return {};
  }
  if (silent.bytes < silent.said.size()) return {};
  return judge(silent, *greeting);
}

std::optional<Meeting::Refusal> Meeting::refusal_of(const Greeting& greeting) {
  const std::string name = rank_name(Rank{greeting.rank});
  if (greeting.job != greeting_.job) return Refusal{Errc::unavailable, name + " is of another run", false};
  if (greeting.world != place_.world)
    return Refusal{Errc::contradiction,
                   name + " was started as one of " + in_words(greeting.world) + ", " + rank_name(place_.rank) +
                       " as one of " + std::to_string(place_.world),
                   true};
  if (greeting.rank <= place_.rank.value || greeting.rank >= place_.world || greeting.port > 65535)
    return Refusal{Errc::unavailable, name + " has nothing to say to " + rank_name(place_.rank), false};
  if (of(greeting.rank).is_open()) return Refusal{Errc::unavailable, "another process is " + name + " already", false};
  if (greeting.plan != greeting_.plan)
    return Refusal{Errc::contradiction, name + " compiled another plan than " + rank_name(place_.rank), true};
  return std::nullopt;
}

Result<void> Meeting::judge(Silent& silent, const Greeting& greeting) {
  Socket socket = std::move(silent.socket);
  const PeerName peer = peer_of(socket);
  if (const std::optional<Refusal> refusal = refusal_of(greeting)) {
    static_cast<void>(send_now(socket, frame(FrameHead::refused, refusal->why, exit_code(refusal->code))));
    turned_away_ = text_of({peer.address, peer.port}) + ": " + refusal->why;
    if (!refusal->ends_the_run) return {};
    return Error{refusal->code, refusal->why, "", "start all ranks with the same options and the same program"};
  }
  if (!send_now(socket, frame(FrameHead::welcome, bytes_of(greeting_)))) return {};
  of(greeting.rank) = std::move(socket);
  // By the loopback: whoever reaches rank 0 from elsewhere finds that rank where rank 0 is.
  if (place_.rank.value == 0)
    listening_[static_cast<std::size_t>(greeting.rank)] = {peer.loopback ? "" : peer.address,
                                                           static_cast<std::uint16_t>(greeting.port)};
  return {};
}

void Meeting::give_up(const Error& error) const {
  const bool all = error.code == Errc::contradiction;
  const std::string last =
      all ? frame(FrameHead::refused, error.what, exit_code(error.code)) : frame(FrameHead::abort, error.what);
  for (const Socket& socket : ranks_)
    if (socket.is_open()) static_cast<void>(send_now(socket, last));
}

}  // namespace

Result<std::vector<Socket>> meet(const TcpPlace& place, std::chrono::milliseconds deadline) {
  Meeting meeting(place, deadline);
  Result<void> met = place.rank.value == 0 ? meeting.lead() : meeting.follow();
  if (met) return meeting.take();
  meeting.give_up(met.error());
  return met.error();
}

}  // namespace shard::tcp
