// Descriptors travel as SCM_RIGHTS: pipes, files and terminals arrive as what they are.
#include "executor/launch/parent_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "executor/launch/wire.h"
#include "traces/base/run_place.h"

namespace shard {
namespace {

bool send_packet(int descriptor, WireHead head, std::string_view text, int flags = 0) {
  head.bytes = static_cast<std::uint32_t>(text.size());
  std::array<iovec, 2> parts{{{&head, sizeof head}, {const_cast<char*>(text.data()), text.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return sendmsg(descriptor, &message, MSG_NOSIGNAL | flags) >= 0;
}

/// -1 in `recorder` where none came.
bool take_streams(int descriptor, int& recorder) {
  WireHead head;
  iovec part{&head, sizeof head};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(3 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do received = recvmsg(descriptor, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  const cmsghdr* rights = received > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) return false;
  std::array<int, 3> came{-1, -1, -1};
  if (rights->cmsg_len != CMSG_LEN(2 * sizeof(int)) && rights->cmsg_len != CMSG_LEN(3 * sizeof(int))) return false;
  std::memcpy(came.data(), CMSG_DATA(rights), rights->cmsg_len - CMSG_LEN(0));
  dup2(came[0], STDOUT_FILENO);
  dup2(came[1], STDERR_FILENO);
  for (const int stream : {came[0], came[1]}) close(stream);
  recorder = came[2];
  return true;
}

}  // namespace

Result<std::unique_ptr<ParentLine>> ParentLine::connect(const Role& role) {
  const auto lost = [&] {
    return Error{Errc::unavailable, std::string("the process that started this rank is gone: ") + std::strerror(errno),
                 "rank " + std::to_string(role.rank.value), ""};
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (role.parent.size() >= sizeof address.sun_path) return lost();
  std::copy(role.parent.begin(), role.parent.end(), address.sun_path);
  const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return lost();
  std::unique_ptr<ParentLine> line(new ParentLine(descriptor));
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return lost();
  if (!send_packet(descriptor, {WireHead::hello, role.rank.value, 0}, {}) || !take_streams(descriptor, line->recorder_))
    return lost();
  return line;
}

ParentLine::~ParentLine() {
  if (recorder_ >= 0) close(recorder_);
  close(descriptor_);
}

void ParentLine::report(int exit_code, std::string_view message) {
  send_packet(descriptor_, {WireHead::end, exit_code, 0}, message.substr(0, kWireText));
}

void ParentLine::let_others_end_first() {
  pollfd parent{descriptor_, 0, 0};
  ::poll(&parent, 1, 500);
}

void ParentLine::fall_silent() {
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing >= 0) {
    dup2(nothing, STDERR_FILENO);
    close(nothing);
  }
  constexpr int kForTheOthers = 20;  // milliseconds: several times what a thread waits for a busy core
  pollfd parent{descriptor_, 0, 0};
  ::poll(&parent, 1, kForTheOthers);
}

bool ParentLine::beat() {
  const RunPlace place = run_place();
  WireBeat beat{.step = place.step, .part = static_cast<std::int32_t>(place.part), .blocking = {}};
  if (const char* call = BlockingCall::now().name; call != nullptr)
    std::strncpy(beat.blocking.data(), call, beat.blocking.size() - 1);
  const std::string_view bytes(reinterpret_cast<const char*>(&beat), sizeof beat);
  return send_packet(descriptor_, {WireHead::beat, 0, 0}, bytes, MSG_DONTWAIT) || errno == EAGAIN;
}

int ParentLine::take_request() {
  WireHead head;
  const ssize_t received = recv(descriptor_, &head, sizeof head, MSG_DONTWAIT);
  return received == static_cast<ssize_t>(sizeof head) && head.kind == WireHead::stop ? head.number : 0;
}

pid_t ParentLine::parent() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(descriptor_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : -1;
}

}  // namespace shard
