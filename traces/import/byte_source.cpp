// Windows over a file, over memory, or over what zlib makes of either.
#include "traces/import/byte_source.h"

#include <zlib.h>

#include <vector>

#include "traces/base/input_file.h"

namespace shard::import {
namespace {

constexpr std::size_t kRawBytes = 1u << 16;

}  // namespace

struct ByteSource::State {
  std::optional<InputFile> file;
  std::span<const std::byte> memory;  // where there is no file
  bool direct = false;                // the window is the memory itself, or what is left of it
  std::vector<char> window;
  // Compressed input: what zlib takes its input from.
  bool gzip = false, ended = false;
  std::vector<char> raw;
  z_stream zlib{};

  ~State() {
    if (gzip) inflateEnd(&zlib);
  }
};

ByteSource::ByteSource(std::unique_ptr<State> state, std::string label)
    : state_(std::move(state)), label_(std::move(label)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

Result<ByteSource> ByteSource::open(const std::filesystem::path& path) {
  auto state = std::make_unique<State>();
  Result<InputFile> file = InputFile::open_stream(path);
  if (!file) {
    Error error = file.error();
    error.what = "cannot be read: " + error.what;
    if (error.help.empty()) error.help = "the path of a trace file";
    return error;
  }
  state->file = std::move(*file);
  ByteSource source(std::move(state), path.string());
  source.start();
  return source;
}

ByteSource ByteSource::memory(std::span<const std::byte> bytes, std::string_view label) {
  auto state = std::make_unique<State>();
  state->direct = true;
  ByteSource source(std::move(state), std::string(label));
  source.at_ = reinterpret_cast<const char*>(bytes.data());
  source.end_ = source.at_ + bytes.size();
  source.window_end_ = bytes.size();
  source.start();
  return source;
}

void ByteSource::start() {
  const std::string_view first = peek(2);
  if (first != "\x1f\x8b") return;
  State& state = *state_;
  const std::string_view seen(at_, static_cast<std::size_t>(end_ - at_));
  // What the window holds becomes zlib's first input.
  if (state.direct) {
    state.memory = std::as_bytes(std::span<const char>(seen));
    state.direct = false;
    state.raw.resize(kRawBytes);
    state.zlib.avail_in = 0;
  } else {
    state.raw.assign(seen.begin(), seen.end());
    state.raw.resize(std::max(state.raw.size(), kRawBytes));
    state.zlib.next_in = reinterpret_cast<Bytef*>(state.raw.data());
    state.zlib.avail_in = static_cast<uInt>(seen.size());
  }
  at_ = end_ = nullptr;
  window_end_ = 0;
  if (inflateInit2(&state.zlib, 15 + 16) != Z_OK) {
    fault_ = "zlib cannot start";
    state.ended = true;
    return;
  }
  state.gzip = true;
}

bool ByteSource::compressed() const {
  return state_->gzip;
}

std::string ByteSource::where() const {
  return label_ + ": byte " + std::to_string(offset()) + (compressed() ? " of the decompressed data" : "");
}

std::size_t ByteSource::fill_raw(char* out, std::size_t room) {
  State& state = *state_;
  if (state.file) {
    const Result<std::size_t> count = state.file->read(std::as_writable_bytes(std::span(out, room)));
    if (!count && fault_.empty()) fault_ = "cannot be read further: " + count.error().what;
    return count ? *count : 0;
  }
  const std::size_t count = std::min(room, state.memory.size());
  if (count > 0) std::memcpy(out, state.memory.data(), count);
  state.memory = state.memory.subspan(count);
  return count;
}

std::size_t ByteSource::inflate_some(char* out, std::size_t room) {
  State& state = *state_;
  z_stream& zlib = state.zlib;
  zlib.next_out = reinterpret_cast<Bytef*>(out);
  zlib.avail_out = static_cast<uInt>(room);
  while (!state.ended && zlib.avail_out == room) {
    if (zlib.avail_in == 0) {
      zlib.next_in = reinterpret_cast<Bytef*>(state.raw.data());
      zlib.avail_in = static_cast<uInt>(fill_raw(state.raw.data(), state.raw.size()));
      if (zlib.avail_in == 0) {
        if (fault_.empty()) fault_ = "the compressed data stops before its end";
        state.ended = true;
        break;
      }
    }
    const int code = inflate(&zlib, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      // A gzip file may be several, one after the other; anything else behind the end is ignored, as gunzip does.
      if (zlib.avail_in == 0) {
        zlib.next_in = reinterpret_cast<Bytef*>(state.raw.data());
        zlib.avail_in = static_cast<uInt>(fill_raw(state.raw.data(), state.raw.size()));
      }
      if (zlib.avail_in == 0 || *zlib.next_in != 0x1f || inflateReset(&zlib) != Z_OK) state.ended = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      fault_ = std::string("the compressed data is damaged: ") + (zlib.msg == nullptr ? "unknown" : zlib.msg);
      state.ended = true;
    }
  }
  return room - zlib.avail_out;
}

std::size_t ByteSource::fill(char* out, std::size_t room) {
  return state_->gzip ? inflate_some(out, room) : fill_raw(out, room);
}

bool ByteSource::refill() {
  if (state_->direct) return false;
  std::vector<char>& window = state_->window;
  window.resize(kWindowBytes);
  const std::size_t count = fill(window.data(), window.size());
  at_ = window.data();
  end_ = at_ + count;
  window_end_ += count;
  return count > 0;
}

std::string_view ByteSource::peek(std::size_t bytes) {
  std::vector<char>& window = state_->window;
  auto held = static_cast<std::size_t>(end_ - at_);
  if (held < bytes && !state_->direct) {
    window.resize(kWindowBytes);
    if (held > 0) std::memmove(window.data(), at_, held);
    at_ = window.data();
    while (held < bytes) {
      const std::size_t count = fill(window.data() + held, window.size() - held);
      if (count == 0) break;
      held += count;
      window_end_ += count;
    }
    end_ = at_ + held;
  }
  return {at_, std::min(bytes, held)};
}

bool ByteSource::append(std::string& out, std::uint64_t bytes) {
  while (bytes > 0) {
    const std::string_view ready = window();
    if (ready.empty()) return false;
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, ready.size()));
    out.append(ready.substr(0, count));
    consume(count);
    bytes -= count;
  }
  return true;
}

bool ByteSource::skip(std::uint64_t bytes) {
  while (bytes > 0) {
    const std::string_view ready = window();
    if (ready.empty()) return false;
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, ready.size()));
    consume(count);
    bytes -= count;
  }
  return true;
}

}  // namespace shard::import
