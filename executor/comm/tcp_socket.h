// Sockets of TCP that do not block: listening, dialling until a deadline, short talks at the beginning.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "executor/comm/tcp_wire.h"
#include "traces/base/result.h"

namespace shard::tcp {

using Clock = std::chrono::steady_clock;

/// What ranks wait beyond the deadline for rank 0, which can name who is missing, to say so first.
inline constexpr std::chrono::milliseconds kHeadStart{500};

/// A descriptor, closed with it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

/// Who is at the other end, in numbers; and whether that is this machine by its loopback.
struct PeerName {
  std::string address;
  std::uint16_t port = 0;
  bool loopback = false;
};
[[nodiscard]] PeerName peer_of(const Socket& socket);
[[nodiscard]] std::uint16_t own_port(const Socket& socket);
[[nodiscard]] std::string text_of(const Endpoint& where);  ///< "ADDRESS:PORT"

/// Whether `host` is this machine's loopback by its very name: "localhost", "127.0.0.1" and all of 127.0.0.0/8, "::1".
[[nodiscard]] bool names_loopback(std::string_view host);

/// Listens at `where`, port 0 for any. At all addresses where `where.address` is empty or is none of this machine's, or
/// is a loopback only by this machine's table of hosts. Errc::unavailable where the port is taken or the name not known.
[[nodiscard]] Result<Socket> listen_at(const Endpoint& where);

/// The next that has connected; not open where there is none.
[[nodiscard]] Socket accept_from(const Socket& listener);

/// Connects, again and again until somebody listens. Errc::unavailable for a name that is not known, Errc::retryable at
/// the end. `who` is whom it expects there, for messages.
[[nodiscard]] Result<Socket> dial(const Endpoint& where, Clock::time_point end, const std::string& who);

/// Without waiting: false where not all of it went.
[[nodiscard]] bool send_now(const Socket& socket, std::string_view bytes);

struct Frame {
  FrameHead head;
  std::string text;
};
/// Waits for one frame. Errc::retryable at `end` and where the other end closes, Errc::unavailable where something else
/// than a frame comes. The errors' words go on from `who`: "rank 0 at 10.0.0.1:29501".
[[nodiscard]] Result<Frame> receive_frame(const Socket& socket, Clock::time_point end, const std::string& who);

}  // namespace shard::tcp
