// getaddrinfo is the only call that waits without a deadline; whoever watches this process sees that it does.
#include "executor/comm/tcp_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "traces/base/deadline.h"
#include "traces/base/run_place.h"

namespace shard::tcp {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Between two attempts to reach somebody who does not listen yet.
constexpr int kAgainMilliseconds = 50;

/// `error`: of getaddrinfo.
Addresses addresses_of(const Endpoint& where, bool passive, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const std::string port = std::to_string(where.port);
  const BlockingCall call("getaddrinfo");
  error = getaddrinfo(where.address.empty() ? nullptr : where.address.c_str(), port.c_str(), &hints, &found);
  return {found, &freeaddrinfo};
}

/// `error`: of getaddrinfo.
Error not_known(const Endpoint& where, int error) {
  return {Errc::unavailable, "the host '" + where.address + "' is not known here: " + gai_strerror(error), "",
          "MASTER_ADDR=HOST for all ranks, a name that every machine knows, or the address, of rank 0's"};
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
  if (address->sa_family != AF_INET6) return false;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

void send_at_once(int descriptor) {
  const int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/// A socket that listens at one address; -1, with errno, where it cannot.
int listening(const addrinfo& at) {
  const int descriptor = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return -1;
  const int yes = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const int no = 0;
  if (at.ai_family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (bind(descriptor, at.ai_addr, at.ai_addrlen) == 0 && listen(descriptor, SOMAXCONN) == 0) return descriptor;
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

/// At all addresses of both kinds; of the old kind alone where the machine has no other.
int listening_anywhere(std::uint16_t port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = IN6ADDR_ANY_INIT;
  six.sin6_port = htons(port);
  addrinfo at{};
  at.ai_family = AF_INET6;
  at.ai_addr = reinterpret_cast<sockaddr*>(&six);
  at.ai_addrlen = sizeof six;
  if (const int descriptor = listening(at); descriptor >= 0 || errno == EADDRINUSE) return descriptor;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = INADDR_ANY;
  four.sin_port = htons(port);
  at.ai_family = AF_INET;
  at.ai_addr = reinterpret_cast<sockaddr*>(&four);
  at.ai_addrlen = sizeof four;
  return listening(at);
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

/// One attempt; errno says why it is not open.
Socket connected(const addrinfo& at, Clock::time_point end) {
  Socket socket(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  if (connect(socket.get(), at.ai_addr, at.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return {};
  pollfd there{socket.get(), POLLOUT, 0};
  while (poll(&there, 1, milliseconds_until(end)) <= 0)
    if (Clock::now() >= end) {
      errno = ETIMEDOUT;
      return {};
    }
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0 ? std::move(socket) : Socket();
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

PeerName peer_of(const Socket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (getpeername(socket.get(), address, &size) != 0) return {"?", 0, false};
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  std::string text = host.data();
  if (text.starts_with("::ffff:")) text.erase(0, 7);  // of a socket that takes both
  return {text, static_cast<std::uint16_t>(std::atoi(port.data())), is_loopback(address)};
}

std::uint16_t own_port(const Socket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  return ntohs(storage.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(storage).sin_port
                                            : reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
}

std::string text_of(const Endpoint& where) {
  return where.address + ":" + std::to_string(where.port);
}

bool names_loopback(std::string_view host) {
  if (host == "localhost") return true;
  const std::string text(host);
  in_addr four{};
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Result<Socket> listen_at(const Endpoint& where) {
  int unknown = 0;
  const Addresses named = addresses_of(where, true, unknown);
  if (named == nullptr && !where.address.empty()) return not_known(where, unknown);
  const bool by_table =
      named != nullptr && !where.address.empty() && is_loopback(named->ai_addr) && !names_loopback(where.address);
  int error = EADDRNOTAVAIL;
  if (named != nullptr && !by_table && !where.address.empty())
    for (const addrinfo* at = named.get(); at != nullptr; at = at->ai_next) {
      if (const int descriptor = listening(*at); descriptor >= 0) return Socket(descriptor);
      error = errno;
      if (error == EADDRINUSE) break;
    }
  if (error == EADDRNOTAVAIL) {  // of a translated address, or of none: every address then
    if (const int descriptor = listening_anywhere(where.port); descriptor >= 0) return Socket(descriptor);
    error = errno;
  }
  return Error{Errc::unavailable, "cannot listen at " + text_of(where) + ": " + std::strerror(error), "", ""};
}

Socket accept_from(const Socket& listener) {
  const int descriptor = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor >= 0) send_at_once(descriptor);
  return Socket(descriptor);
}

Result<Socket> dial(const Endpoint& where, Clock::time_point end, const std::string& who) {
  int last = ETIMEDOUT;
  const Clock::time_point begin = Clock::now();
  while (true) {
    int error = 0;
    const Addresses found = addresses_of(where, false, error);
    if (found == nullptr) return not_known(where, error);
    for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
      Socket socket = connected(*at, end);
      if (socket.is_open()) {
        send_at_once(socket.get());
        return socket;
      }
      last = errno;
    }
    if (Clock::now() >= end) break;
    poll(nullptr, 0, kAgainMilliseconds);
  }
  const auto waited = std::chrono::round<std::chrono::milliseconds>(end - begin);
  return Error{Errc::retryable, who + " has not been reached within " + in_seconds(waited) + ": " + std::strerror(last),
               "", kLookAtThatRank};
}

bool send_now(const Socket& socket, std::string_view bytes) {
  const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(bytes.size());
}

Result<Frame> receive_frame(const Socket& socket, Clock::time_point end, const std::string& who) {
  std::array<std::byte, kHeadBytes> head{};
  Frame frame;
  const auto read_all = [&](void* to, std::size_t bytes) -> Result<void> {
    for (std::size_t got = 0; got < bytes;) {
      const ssize_t received = recv(socket.get(), static_cast<char*>(to) + got, bytes - got, 0);
      if (received > 0) {
        got += static_cast<std::size_t>(received);
        continue;
      }
      if (received == 0 || (errno != EAGAIN && errno != EINTR))
        return Error{Errc::retryable, who + " died (its connection ended)", "", "run again"};
      if (Clock::now() >= end) return Error{Errc::retryable, who + " has not answered in time", "", kLookAtThatRank};
      pollfd there{socket.get(), POLLIN, 0};
      poll(&there, 1, milliseconds_until(end));
    }
    return {};
  };
  if (Result<void> r = read_all(head.data(), head.size()); !r) return r.error();
  const std::optional<FrameHead> read = read_head(head);
  if (!read)
    return Error{Errc::unavailable, who + " is no rank of this program: it speaks otherwise", "",
                 "SHARDSCOPE_PORT=N, a free port, for all ranks"};
  frame.head = *read;
  if (frame.head.kind == FrameHead::grant || frame.head.kind == FrameHead::data) return frame;
  frame.text.resize(static_cast<std::size_t>(frame.head.bytes));
  if (Result<void> r = read_all(frame.text.data(), frame.text.size()); !r) return r.error();
  return frame;
}

}  // namespace shard::tcp
