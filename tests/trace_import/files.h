// Small files of every kind, made by hand, and paths of the recordings that may lie beside the project.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "traces/base/protobuf.h"
#include "traces/import/import.h"

namespace shard::files {

inline std::span<const std::byte> bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline Result<LoadedTrace> read(const std::string& text) {
  return load_any(bytes(text), "file");
}

/// Loads what must load.
inline LoadedTrace loaded(const std::string& text) {
  Result<LoadedTrace> result = read(text);
  EXPECT_TRUE(result) << to_string(result.error());
  return result ? std::move(*result) : LoadedTrace{};
}

inline std::string gzip(const std::string& text) {
  z_stream zlib{};
  EXPECT_EQ(deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&zlib, static_cast<uLong>(text.size())) + 64, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - zlib.avail_out);
  deflateEnd(&zlib);
  return out;
}

/// Where a public recording would be; not part of the project.
inline std::filesystem::path recording(const std::string& name) {
  return std::filesystem::path(TEST_DATA) / "../../shared/traces" / name;
}
#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "a recording that is not part of the project"

/// "name begin+duration" per span, in order.
inline std::string spans(const Trace& trace) {
  std::string text;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span span = trace.spans[i];
    if (!text.empty()) text += " | ";
    text += std::string(trace.name_of(span.name)) + " " + std::to_string(span.begin_ns) + "+" +
            std::to_string(span.duration_ns);
  }
  return text;
}

inline std::string track_names(const Trace& trace) {
  std::string text;
  for (const Track& track : trace.tracks) text += (text.empty() ? "" : " | ") + track.name;
  return text;
}

/// Every phase, with what else a Kineto file has.
inline std::string small_json() {
  return R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
"traceEvents": [
 {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}},
 {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "main"}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8, "ts": 10.5, "dur": 4.25, "args": {"a": [1, {"b": 2}]}},
 {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 20, "ts": 12, "dur": 2, "args": {"device": 0, "stream": 20}},
 {"ph": "B", "name": "outer", "pid": 7, "tid": "worker", "ts": 1},
 {"ph": "B", "name": "inner", "pid": 7, "tid": "worker", "ts": 2},
 {"ph": "E", "pid": 7, "tid": "worker", "ts": 3},
 {"ph": "E", "pid": 7, "tid": "worker", "ts": 4.001},
 {"ph": "i", "name": "mark", "pid": 7, "tid": 8, "ts": 5, "s": "t"},
 {"ph": "i", "name": "[memory]", "pid": 7, "tid": 8, "ts": 6, "args": {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 1536, "Total Reserved": 2048}},
 {"ph": "i", "name": "[memory]", "pid": 7, "tid": 8, "ts": 7, "args": {"Bytes": -512, "Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 1024, "Total Reserved": 2048}},
 {"ph": "C", "name": "queue", "pid": 7, "ts": 8, "args": {"length": 3, "depth": 1.5}},
 {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 7, "tid": 8, "ts": 11},
 {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 0, "tid": 20, "ts": 12, "bp": "e"},
 {"ph": "b", "cat": "io", "name": "read", "id": "0x1", "pid": 7, "ts": 20},
 {"ph": "e", "cat": "io", "name": "read", "id": "0x1", "pid": 7, "ts": 25}
]})";
}

/// A packet of sequence 1 inside a trace.
inline void add_packet(ProtoMessage& trace, const ProtoMessage& packet) {
  trace.message(1, packet);
}

inline ProtoMessage track_event(std::int64_t time, std::int64_t type, std::int64_t track, std::string_view name = "") {
  ProtoMessage event, packet;
  event.varint(9, type);
  event.varint(11, track);
  if (!name.empty()) event.text(23, name);
  packet.varint(8, time);
  packet.varint(10, 1);
  packet.message(11, event);
  return packet;
}

/// A process with a thread, two nested slices, an instant, a counter, a flow.
inline std::string small_perfetto() {
  ProtoMessage trace, process, thread, counter, nothing;
  const auto descriptor = [&](std::int64_t uuid, std::uint32_t field, const ProtoMessage& what, std::int64_t parent,
                              std::string_view name) {
    ProtoMessage message, packet;
    message.varint(1, uuid);
    if (!name.empty()) message.text(2, name);
    message.message(field, what);
    if (parent != 0) message.varint(5, parent);
    packet.varint(10, 1);
    packet.message(60, message);
    add_packet(trace, packet);
  };
  process.varint(1, 42);
  process.text(6, "worker");
  descriptor(1, 3, process, 0, "");
  thread.varint(1, 42);
  thread.varint(2, 43);
  thread.text(5, "main");
  descriptor(2, 4, thread, 1, "");
  counter.varint(3, 3);
  descriptor(3, 8, counter, 1, "resident");
  add_packet(trace, track_event(100, 1, 2, "outer"));
  add_packet(trace, track_event(110, 1, 2, "inner"));
  add_packet(trace, track_event(130, 2, 2));
  add_packet(trace, track_event(160, 2, 2));
  add_packet(trace, track_event(140, 3, 2, "mark"));
  ProtoMessage event, packet;
  event.varint(9, 4);
  event.varint(11, 3);
  event.varint(30, 1024);
  packet.varint(8, 150);
  packet.message(11, event);
  add_packet(trace, packet);
  for (const std::uint32_t field : {47u, 48u}) {
    ProtoMessage end, flow;
    flow.varint(9, 3);
    flow.varint(11, 2);
    flow.fixed64(field, 9);
    end.varint(8, field == 47 ? 105 : 115);
    end.varint(10, 1);
    end.message(11, flow);
    add_packet(trace, end);
  }
  return trace.bytes();
}

/// The pickle of a snapshot, protocol 2: one segment of two blocks, three events.
inline std::string small_pickle() {
  std::string out("\x80\x02", 2);
  const auto text = [&](std::string_view s) {
    out += 'X';
    for (int i = 0; i < 4; ++i) out += static_cast<char>(s.size() >> (8 * i) & 0xff);
    out += s;
  };
  const auto number = [&](std::int64_t value) {
    out += "\x8a\x08";
    for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  };
  const auto entry = [&](std::string_view key, std::int64_t value) {
    text(key);
    number(value);
  };
  out += "}(";
  text("segments");
  out += "](}(";
  entry("device", 0);
  entry("address", 1 << 20);
  entry("total_size", 2 << 20);
  entry("allocated_size", 1024);
  entry("stream", 0);
  text("segment_type");
  text("small");
  text("blocks");
  out += "](";
  for (const bool active : {true, false}) {
    out += "}(";
    entry("address", (1 << 20) + (active ? 0 : 1024));
    entry("size", active ? 1024 : (2 << 20) - 1024);
    text("state");
    text(active ? "active_allocated" : "inactive");
    out += 'u';
  }
  out += "eue";
  text("device_traces");
  out += "](](";
  const auto event = [&](std::string_view action, std::int64_t address, std::int64_t bytes, std::int64_t time) {
    out += "}(";
    text("action");
    text(action);
    entry("addr", address);
    entry("size", bytes);
    entry("stream", 0);
    entry("time_us", time);
    out += 'u';
  };
  event("free_completed", (1 << 20) + 2048, 700, 5);
  event("alloc", 1 << 20, 1000, 6);
  event("free_requested", 1 << 20, 1000, 7);
  out += "eeu.";
  return out;
}

}  // namespace shard::files
