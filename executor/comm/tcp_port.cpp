// One lock around everything: the thread that takes signals may look for lost peers while the rank's own thread works.
#include "executor/comm/tcp_port.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "executor/comm/communicator.h"
#include "executor/comm/validate.h"
#include "traces/base/deadline.h"

namespace shard::tcp {
namespace {

/// What one connection moves in one turn each way, about.
constexpr std::int64_t kTurn = std::int64_t{1} << 20;
/// Grants for messages that are not sent yet: a peer that sends more is no rank of ours.
constexpr std::size_t kMostGrants = std::size_t{1} << 20;
/// For last words to leave, to a peer that may not read any more.
constexpr std::chrono::milliseconds kLastWords{200};

struct Message {
  int peer = 0;
  int tag = 0;
  const std::byte* from = nullptr;  ///< of a send
  std::byte* to = nullptr;          ///< of a receive
  std::int64_t bytes = 0;
  bool complete = false;
};

/// A frame on its way out. The payload is `text`, or a message's bytes.
struct Outgoing {
  std::string head;  ///< with the text
  MessageId message = kNoMessage;
  const std::byte* payload = nullptr;
  std::int64_t bytes = 0;  ///< of the payload
};

struct Grant {
  int tag = 0;
  std::int64_t bytes = 0;
};

struct Peer {
  Socket socket;
  bool left = false;
  // Out: words go before data, but never into the middle of a frame.
  std::deque<Outgoing> words;
  std::deque<Outgoing> data;
  bool sending_data = false;     ///< what is under way is data.front(), else words.front()
  std::int64_t sent = 0;         ///< of what is under way
  std::vector<MessageId> sends;  ///< posted and not granted
  std::vector<Grant> grants;     ///< for what is not posted
  // In.
  std::array<std::byte, kHeadBytes> head{};
  std::int64_t got = 0;  ///< of the frame that comes, its head included
  FrameHead frame;
  MessageId message = kNoMessage;
  std::string text;
  std::vector<MessageId> receives;  ///< posted and not begun
  std::deque<std::string> texts;    ///< of exchanges
};

class TcpPort final : public MessagePort {
 public:
  TcpPort(Rank own, std::vector<Socket> connections) : own_(own), peers_(connections.size()) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].socket = std::move(connections[rank]);
  }

  [[nodiscard]] Rank rank() const override { return own_; }
  [[nodiscard]] int size() const override { return static_cast<int>(peers_.size()); }
  [[nodiscard]] std::string_view name() const override { return "tcp"; }
  [[nodiscard]] int tag_bits() const override { return 30; }
  [[nodiscard]] MessageId send(Rank to, int tag, const std::byte* at, std::int64_t bytes) override;
  [[nodiscard]] MessageId receive(Rank from, int tag, std::byte* at, std::int64_t bytes) override;
  [[nodiscard]] Result<bool> progress() override {
    const std::lock_guard lock(mutex_);
    return turn();
  }
  [[nodiscard]] Result<bool> finish(MessageId id) override {
    const std::lock_guard lock(mutex_);
    if (!messages_[id].complete) return false;
    free_.push_back(id);
    return true;
  }
  [[nodiscard]] bool is_complete(MessageId id) const override {
    const std::lock_guard lock(mutex_);
    return messages_[id].complete;
  }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own,
                                                          std::chrono::milliseconds deadline) override;
  void abort(std::string_view reason) override { say_last(frame(FrameHead::abort, reason)); }
  [[nodiscard]] std::optional<Error> news() override {
    const std::lock_guard lock(mutex_);
    return news_;
  }
  [[nodiscard]] std::optional<Error> lost_peer() override {
    const std::lock_guard lock(mutex_);
    if (!news_) turn();
    return news_;
  }
  void leave(bool properly) override {
    if (properly) say_last(frame(FrameHead::bye, {}));
    const std::lock_guard lock(mutex_);
    for (Peer& peer : peers_) peer.socket = Socket();  // no byte goes to an arena that is given back
  }

 private:
  MessageId take(Message message);
  [[nodiscard]] Peer& of(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  void say(int rank, std::string words) { of(rank).words.push_back({.head = std::move(words)}); }
  void say_last(const std::string& words);
  void put_out(Peer& peer, MessageId id);
  bool turn();
  bool flush(int rank);
  [[nodiscard]] ssize_t send_part(const Peer& peer, const Outgoing& out) const;
  bool take_in(int rank);
  [[nodiscard]] std::pair<void*, std::size_t> room(Peer& peer);
  void heard(int rank);
  void begin_frame(int rank);
  void end_frame(int rank);
  void granted(int rank);
  void lose(int rank, const std::string& what);
  /// Whether the ranks' texts are there, and the own words out.
  [[nodiscard]] Result<bool> look_for(const std::vector<int>& ranks, Clock::time_point end, const std::string& late);
  [[nodiscard]] Result<void> wait_for(const std::vector<int>& ranks, Clock::time_point end, const std::string& late);
  [[nodiscard]] bool all_out() const;

  Rank own_;
  mutable std::mutex mutex_;
  std::vector<Peer> peers_;
  std::vector<Message> messages_;  ///< by id
  std::vector<MessageId> free_;
  std::vector<pollfd> descriptors_;
  std::vector<int> polled_;  ///< beside descriptors_: the rank
  std::optional<Error> news_;
};

MessageId TcpPort::take(Message message) {
  if (free_.empty()) {
    messages_.push_back(message);
    return static_cast<MessageId>(messages_.size() - 1);
  }
  const MessageId id = free_.back();
  free_.pop_back();
  messages_[id] = message;
  return id;
}

void TcpPort::put_out(Peer& peer, MessageId id) {
  const Message& message = messages_[id];
  FrameHead head;
  head.kind = FrameHead::data;
  head.bytes = message.bytes;
  head.tag = message.tag;
  peer.data.push_back({.head = {reinterpret_cast<const char*>(&head), sizeof head},
                       .message = id,
                       .payload = message.from,
                       .bytes = message.bytes});
}

MessageId TcpPort::send(Rank to, int tag, const std::byte* at, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const MessageId id = take({.peer = to.value, .tag = tag, .from = at, .bytes = bytes});
  Peer& peer = of(to.value);
  const auto grant = std::ranges::find(peer.grants, tag, &Grant::tag);
  if (grant == peer.grants.end()) {
    peer.sends.push_back(id);
  } else if (grant->bytes != bytes) {
    lose(to.value, "awaits a message of another size");
  } else {
    peer.grants.erase(grant);
    put_out(peer, id);
  }
  return id;
}

MessageId TcpPort::receive(Rank from, int tag, std::byte* at, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const MessageId id = take({.peer = from.value, .tag = tag, .to = at, .bytes = bytes});
  FrameHead head;
  head.kind = FrameHead::grant;
  head.bytes = bytes;
  head.tag = tag;
  of(from.value).receives.push_back(id);
  say(from.value, {reinterpret_cast<const char*>(&head), sizeof head});
  return id;
}

void TcpPort::lose(int rank, const std::string& what) {
  of(rank).socket = Socket();
  if (!news_) news_ = Error{Errc::retryable, rank_name(Rank{rank}) + " " + what, "", "run again"};
}

bool TcpPort::turn() {
  descriptors_.clear();
  polled_.clear();
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& peer = of(rank);
    if (!peer.socket.is_open()) continue;
    const bool out = !peer.words.empty() || !peer.data.empty();
    descriptors_.push_back({peer.socket.get(), static_cast<short>(POLLIN | (out ? POLLOUT : 0)), 0});
    polled_.push_back(rank);
  }
  if (::poll(descriptors_.data(), descriptors_.size(), 0) <= 0) return false;
  bool moved = false;
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    const short events = descriptors_[i].revents;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) moved |= take_in(polled_[i]);
    if ((events & POLLOUT) != 0) moved |= flush(polled_[i]);
  }
  return moved;
}

ssize_t TcpPort::send_part(const Peer& peer, const Outgoing& out) const {
  const auto head = static_cast<std::int64_t>(out.head.size());
  const std::int64_t head_sent = std::min(peer.sent, head);
  const std::int64_t sent = peer.sent - head_sent;  // of the payload
  std::array<iovec, 2> parts{
      {{const_cast<char*>(out.head.data()) + head_sent, static_cast<std::size_t>(head - head_sent)},
       {const_cast<std::byte*>(out.payload) + sent, static_cast<std::size_t>(std::min(out.bytes - sent, kTurn))}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = out.bytes > 0 ? 2 : 1;
  return sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool TcpPort::flush(int rank) {
  Peer& peer = of(rank);
  bool moved = false;
  for (std::int64_t budget = kTurn; budget > 0 && peer.socket.is_open();) {
    if (peer.sent == 0) {
      if (peer.words.empty() && peer.data.empty()) break;
      peer.sending_data = peer.words.empty();
    }
    std::deque<Outgoing>& queue = peer.sending_data ? peer.data : peer.words;
    const Outgoing& out = queue.front();
    const ssize_t sent = send_part(peer, out);
    if (sent < 0) {
      // What it said before it went is still to be read.
      if (errno == EAGAIN || errno == EINTR) break;
      if (!take_in(rank) && peer.socket.is_open()) lose(rank, "died (its connection ended)");
      break;
    }
    moved = true;
    budget -= sent;
    peer.sent += sent;
    if (peer.sent < static_cast<std::int64_t>(out.head.size()) + out.bytes) continue;
    if (out.message != kNoMessage) messages_[out.message].complete = true;
    queue.pop_front();
    peer.sent = 0;
  }
  return moved;
}

/// Where the next bytes go, and how many they may be.
std::pair<void*, std::size_t> TcpPort::room(Peer& peer) {
  constexpr auto kHead = static_cast<std::int64_t>(kHeadBytes);
  if (peer.got < kHead) return {peer.head.data() + peer.got, static_cast<std::size_t>(kHead - peer.got)};
  const std::int64_t got = peer.got - kHead;
  const auto left = static_cast<std::size_t>(std::min(peer.frame.bytes - got, kTurn));
  if (peer.message != kNoMessage) return {messages_[peer.message].to + got, left};
  return {peer.text.data() + got, left};
}

bool TcpPort::take_in(int rank) {
  Peer& peer = of(rank);
  bool moved = false;
  for (std::int64_t budget = kTurn; budget > 0 && peer.socket.is_open();) {
    const auto [to, bytes] = room(peer);
    const ssize_t got = recv(peer.socket.get(), to, bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0) {
      if (peer.left)
        peer.socket = Socket();
      else
        lose(rank, got == 0 || errno == ECONNRESET
                       ? "died (its connection ended)"
                       : std::string("cannot be reached any more: ") + std::strerror(errno));
      break;
    }
    moved = true;
    budget -= got;
    peer.got += got;
    heard(rank);
  }
  return moved;
}

void TcpPort::heard(int rank) {
  Peer& peer = of(rank);
  constexpr auto kHead = static_cast<std::int64_t>(kHeadBytes);
  if (peer.got == kHead) begin_frame(rank);
  if (!peer.socket.is_open() || peer.got < kHead) return;
  const bool without = peer.frame.kind == FrameHead::grant;
  if (without || peer.got - kHead == peer.frame.bytes) end_frame(rank);
}

void TcpPort::begin_frame(int rank) {
  Peer& peer = of(rank);
  const std::optional<FrameHead> head = read_head(peer.head);
  peer.message = kNoMessage;
  peer.text.clear();
  if (!head || peer.left) return lose(rank, "says what is no word of this program");
  peer.frame = *head;
  if (head->kind == FrameHead::data) {
    const auto found =
        std::ranges::find_if(peer.receives, [&](MessageId id) { return messages_[id].tag == head->tag; });
    if (found == peer.receives.end() || messages_[*found].bytes != head->bytes)
      return lose(rank, "sends what nobody awaits");
    peer.message = *found;
    peer.receives.erase(found);
  } else if (head->kind == FrameHead::text || head->kind == FrameHead::abort) {
    peer.text.resize(static_cast<std::size_t>(head->bytes));
  } else if (head->kind != FrameHead::grant && head->kind != FrameHead::bye) {
    lose(rank, "speaks out of turn");
  }
}

void TcpPort::end_frame(int rank) {
  Peer& peer = of(rank);
  peer.got = 0;
  switch (peer.frame.kind) {
    case FrameHead::grant: return granted(rank);
    case FrameHead::data: messages_[peer.message].complete = true; return;
    case FrameHead::text:
      if (peer.texts.size() > 1) return lose(rank, "speaks out of turn");
      peer.texts.push_back(std::move(peer.text));
      return;
    case FrameHead::abort:
      if (!news_) news_ = Error{Errc::retryable, rank_name(Rank{rank}) + " stopped: " + peer.text, "", ""};
      peer.left = true;
      return;
    case FrameHead::bye: peer.left = true; return;
    default: return;
  }
}

void TcpPort::granted(int rank) {
  Peer& peer = of(rank);
  const auto found =
      std::ranges::find_if(peer.sends, [&](MessageId id) { return messages_[id].tag == peer.frame.tag; });
  if (found == peer.sends.end()) {
    if (peer.grants.size() >= kMostGrants) return lose(rank, "speaks out of turn");
    peer.grants.push_back({peer.frame.tag, peer.frame.bytes});
    return;
  }
  if (messages_[*found].bytes != peer.frame.bytes) return lose(rank, "awaits a message of another size");
  put_out(peer, *found);
  peer.sends.erase(found);
}

bool TcpPort::all_out() const {
  return std::ranges::all_of(
      peers_, [](const Peer& peer) { return !peer.socket.is_open() || (peer.words.empty() && peer.data.empty()); });
}

void TcpPort::say_last(const std::string& words) {
  const std::lock_guard lock(mutex_);
  for (int rank = 0; rank < size(); ++rank)
    if (of(rank).socket.is_open()) say(rank, words);
  // What is not under way has nobody who waits for it.
  for (Peer& peer : peers_)
    while (peer.data.size() > (peer.sending_data && peer.sent > 0 ? 1U : 0U)) peer.data.pop_back();
  const Clock::time_point end = Clock::now() + kLastWords;
  Backoff backoff;
  while (!all_out() && Clock::now() < end)
    if (!turn()) backoff.pause();
  for (const Peer& peer : peers_)
    if (peer.socket.is_open()) shutdown(peer.socket.get(), SHUT_WR);
}

Result<bool> TcpPort::look_for(const std::vector<int>& ranks, Clock::time_point end, const std::string& late) {
  const std::lock_guard lock(mutex_);
  if (turn()) return false;
  std::vector<int> missing;
  for (const int rank : ranks)
    if (of(rank).texts.empty()) missing.push_back(rank);
  if (missing.empty() && all_out()) return true;
  if (news_) return *news_;
  for (const int rank : missing)
    if (of(rank).left)
      return Error{Errc::retryable, rank_name(Rank{rank}) + " left before this exchange was complete", "", ""};
  if (Clock::now() <= end) return false;
  if (missing.empty()) return Error{Errc::retryable, "not all ranks have" + late, "", kLookAtThatRank};
  // Rank 0, of which the others await that all have come, says who is missing before they give up, if it can.
  const std::string itself = own_.value > 0 ? ", or waits for another" : "";
  return Error{Errc::retryable, ranks_have(missing) + " not" + late + itself, "", kLookAtThatRank};
}

Result<void> TcpPort::wait_for(const std::vector<int>& ranks, Clock::time_point end, const std::string& late) {
  Backoff backoff;
  while (true) {
    const Result<bool> there = look_for(ranks, end, late);
    if (!there) return there.error();
    if (*there) return {};
    backoff.pause();  // without the lock
  }
}

Result<std::vector<std::string>> TcpPort::exchange(std::string_view own, std::chrono::milliseconds deadline) {
  const std::string late = " arrived at an exchange within " + in_seconds(deadline);
  const Clock::time_point end = Clock::now() + deadline;
  if (own_.value > 0) {
    {
      const std::lock_guard lock(mutex_);
      say(0, frame(FrameHead::text, own));
    }
    if (Result<void> r = wait_for({0}, end + kHeadStart, late); !r) return r.error();
    const std::lock_guard lock(mutex_);
    const std::optional<std::vector<std::string>> all = unpack_texts(of(0).texts.front(), size());
    of(0).texts.pop_front();
    if (!all) return Error{Errc::internal, "rank 0 does not say what all ranks said", "", ""};
    return *all;
  }
  std::vector<int> others;
  for (int rank = 1; rank < size(); ++rank) others.push_back(rank);
  if (Result<void> r = wait_for(others, end, late); !r) return r.error();
  std::vector<std::string> all{std::string(own)};
  {
    const std::lock_guard lock(mutex_);
    for (const int rank : others) {
      all.push_back(std::move(of(rank).texts.front()));
      of(rank).texts.pop_front();
    }
    const std::string answer = frame(FrameHead::text, pack_texts(all));
    for (const int rank : others) say(rank, answer);
  }
  if (Result<void> r = wait_for({}, end + kHeadStart, late); !r) return r.error();
  return all;
}

}  // namespace

std::unique_ptr<MessagePort> make_port(Rank own, std::vector<Socket> connections) {
  return std::make_unique<TcpPort>(own, std::move(connections));
}

}  // namespace shard::tcp
