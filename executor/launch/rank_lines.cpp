// A line's end of file is the rank's death certificate: the kernel closes it however a process ends.
#include "executor/launch/rank_lines.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "executor/launch/wire.h"

namespace shard {
namespace {

/// `recorder`: -1 for none.
bool send_streams(int descriptor, int recorder) {
  WireHead head{WireHead::streams, 0, 0};
  iovec part{&head, sizeof head};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(3 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  const std::size_t bytes = (recorder < 0 ? 2 : 3) * sizeof(int);
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(bytes);
  const int descriptors[3] = {STDOUT_FILENO, STDERR_FILENO, recorder};
  std::memcpy(CMSG_DATA(rights), descriptors, bytes);
  return sendmsg(descriptor, &message, MSG_NOSIGNAL) >= 0;
}

}  // namespace

Result<RankLines> RankLines::listen(const std::string& path) {
  const auto failed = [&](const char* what) {
    return Error{Errc::cannot_create, std::string(what) + ": " + std::strerror(errno), path, ""};
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return failed("socket");
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  RankLines lines;
  lines.listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (lines.listener_ < 0 || bind(lines.listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(lines.listener_, SOMAXCONN) != 0)
    return failed("socket");
  return lines;
}

RankLines::RankLines(RankLines&& other) noexcept
    : listener_(std::exchange(other.listener_, -1)),
      lines_(std::exchange(other.lines_, {})),
      recorders_(std::exchange(other.recorders_, {})),
      ends_(std::exchange(other.ends_, {})),
      beats_(std::exchange(other.beats_, {})),
      came_(other.came_) {}

RankLines::~RankLines() {
  for (Line& line : lines_) close(line);
  if (listener_ >= 0) ::close(listener_);
}

void RankLines::add_to(std::vector<pollfd>& descriptors) const {
  descriptors.push_back({listener_, POLLIN, 0});
  for (const Line& line : lines_) descriptors.push_back({line.descriptor, POLLIN, 0});
}

bool RankLines::any_open() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.descriptor >= 0; });
}

void RankLines::serve() {
  accept_all();
  const auto known = static_cast<std::ptrdiff_t>(ends_.size());
  // Twice: a death that a survivor's report speaks of came before that report, so the second round sees it.
  for (int round = 0; round < 2; ++round)
    for (Line& line : lines_)
      while (line.descriptor >= 0 && read(line)) {
      }
  std::stable_partition(ends_.begin() + known, ends_.end(), [](const End& end) { return !end.exit_code; });
}

void RankLines::ask_to_stop(int signal) {
  const WireHead head{WireHead::stop, signal, 0};
  for (Line& line : lines_) {
    if (line.descriptor < 0 || !line.rank || line.asked) continue;
    line.asked = send(line.descriptor, &head, sizeof head, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
  }
}

void RankLines::accept_all() {
  while (true) {
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != getuid()) {
      ::close(descriptor);
      continue;
    }
    lines_.push_back({.descriptor = descriptor, .rank = std::nullopt});
  }
}

bool RankLines::read(Line& line) {
  WireHead head;
  std::array<char, kWireText> text;
  std::array<iovec, 2> parts{{{&head, sizeof head}, {text.data(), text.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t received = recvmsg(line.descriptor, &message, MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (received < static_cast<ssize_t>(sizeof head)) {
    if (line.rank && !line.reported) ends_.push_back({*line.rank, std::nullopt, {}});
    close(line);
    return false;
  }
  const std::size_t bytes = std::min<std::size_t>(head.bytes, static_cast<std::size_t>(received) - sizeof head);
  if (head.kind == WireHead::hello && !line.rank) {
    line.rank = Rank{head.number};
    ++came_;
    beats_.push_back({*line.rank, {RunPart::start, 0}, {}});
    const auto number = static_cast<std::size_t>(head.number);
    if (!send_streams(line.descriptor, number < recorders_.size() ? recorders_[number] : -1)) return true;
  } else if (head.kind == WireHead::end && line.rank && !line.reported) {
    line.reported = true;
    ends_.push_back({*line.rank, head.number, std::string(text.data(), bytes)});
  } else if (head.kind == WireHead::beat && line.rank && bytes == sizeof(WireBeat)) {
    WireBeat beat;
    std::memcpy(&beat, text.data(), sizeof beat);
    beat.blocking.back() = '\0';
    beats_.push_back({*line.rank, {static_cast<RunPart>(beat.part), beat.step}, beat.blocking.data()});
  }
  return true;
}

void RankLines::close(Line& line) {
  if (line.descriptor >= 0) ::close(line.descriptor);
  line.descriptor = -1;
}

}  // namespace shard
