// Fuzz target: whatever comes over a connection, greeting, frames, tables or anything else, is read and harms nobody.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/comm/tcp_port.h"
#include "executor/comm/tcp_wire.h"

namespace {

using namespace shard;

void read_texts(std::string_view text, int world) {
  if (const auto table = tcp::read_table(text, world)) {
    if (static_cast<int>(table->size()) != world) std::abort();
    if (!tcp::read_table(tcp::write_table(*table), world)) std::abort();
  }
  if (const auto texts = tcp::unpack_texts(text, world))
    if (tcp::pack_texts(*texts) != text) std::abort();
}

/// A rank with messages on their way hears the bytes from its peer.
void hear(std::string_view words) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return;
  std::vector<tcp::Socket> connections(2);
  connections[1] = tcp::Socket(ends[0]);
  const tcp::Socket peer(ends[1]);
  const std::unique_ptr<MessagePort> port = tcp::make_port(Rank{0}, std::move(connections));
  std::array<std::byte, 48> room{};
  std::array<MessageId, 4> messages{};
  for (std::size_t i = 0; i < 2; ++i) {
    messages[i] = port->receive(Rank{1}, static_cast<int>(i), room.data() + 8 * i, 8);
    messages[2 + i] = port->send(Rank{1}, static_cast<int>(i), room.data() + 16 + 8 * i, 8);
  }
  if (!tcp::send_now(peer, words)) return;
  for (int turn = 0; turn < 4; ++turn) static_cast<void>(port->progress());
  for (const MessageId message : messages) static_cast<void>(port->is_complete(message));
  static_cast<void>(port->news());
  // Only what was awaited was written.
  if (std::any_of(room.begin() + 16, room.end(), [](std::byte byte) { return byte != std::byte{0}; })) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  static_cast<void>(tcp::read_greeting(std::span(bytes, size)));
  static_cast<void>(tcp::read_head(std::span(bytes, size)));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > 0) read_texts(text.substr(1), 1 + data[0] % 8);
  hear(text);
  return 0;
}
