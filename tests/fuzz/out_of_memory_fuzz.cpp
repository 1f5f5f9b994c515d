// Fuzz target: no text makes the reader of out-of-memory messages crash, and what it reads adds up.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/limits.h"
#include "tests/fuzz/trace_check.h"
#include "traces/out_of_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  const fuzz::Limits limits(size);
  const Result<OutOfMemory> message = read_out_of_memory({reinterpret_cast<const char*>(data), size}, "fuzz.log");
  if (!message) {
    fuzz::require(!message.error().what.empty() && !message.error().help.empty());
    return 0;
  }
  for (const Bytes each : {message->asked, message->capacity, message->free, message->allocated, message->unallocated,
                           message->reserved(), message->elsewhere(), message->outside().value_or(Bytes{0})})
    fuzz::require(each >= Bytes{0} && each <= Bytes{std::int64_t{1} << 52});
  fuzz::require(message->message_count >= 1);
  fuzz::require(*to_string(cause_of(*message)) != '?');
  return 0;
}
