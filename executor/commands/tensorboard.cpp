// TensorFlow's record framing around protobuf messages Event { double wall_time = 1; int64 step = 2; string file_version
// = 3; Summary summary = 5; } with Summary { repeated Value value = 1; } and Value { string tag = 1; float simple_value
// = 2; }. Source: tensorboard/compat/proto/event.proto, summary.proto; tensorflow/core/lib/io/record_writer.h.
#include "executor/commands/tensorboard.h"

#include <unistd.h>

#include <array>
#include <boost/crc.hpp>
#include <chrono>
#include <utility>

#include "traces/base/protobuf.h"

namespace shard::commands {
namespace {

using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

/// Rotated and moved, so that a checksum of bytes that hold checksums is no trivial one.
std::string masked_crc(std::string_view bytes) {
  Crc32c crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const std::uint32_t sum = crc.checksum();
  return little_endian(((sum >> 15 | sum << 17) + 0xa282ead8U) & 0xffffffffU, 4);
}

ProtoMessage begun_event() {
  ProtoMessage event;
  event.number(1, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

Result<EventFile> EventFile::create(const std::filesystem::path& folder) {
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault)
    return Error{Errc::cannot_create, "cannot make the folder: " + fault.message(), folder.string(), "another folder"};
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string name = "events.out.tfevents." + std::to_string(seconds) + '.' + host_name() + '.' +
                           std::to_string(::getpid());
  Result<OutputFile> created = OutputFile::create(folder / name, Appears::growing);
  if (!created) return created.error();
  EventFile file(std::move(*created));
  ProtoMessage version = begun_event();
  version.text(3, "brain.Event:2");
  file.record(version.bytes());
  return file;
}

void EventFile::write(std::int64_t step, std::span<const Scalar> scalars) {
  ProtoMessage summary;
  for (const Scalar& scalar : scalars) {
    ProtoMessage value;
    value.text(1, scalar.tag);
    value.number32(2, static_cast<float>(scalar.value));
    summary.message(1, value);
  }
  ProtoMessage event = begun_event();
  event.varint(2, step);
  event.message(5, summary);
  record(event.bytes());
}

void EventFile::record(std::string_view event) {
  const std::string length = little_endian(event.size(), 8);
  file_.write(length + masked_crc(length) + std::string(event) + masked_crc(event));
  static_cast<void>(file_.flush());  // finish() tells
}

}  // namespace shard::commands
