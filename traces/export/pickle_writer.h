// Writes Python pickles of protocol 2: numbers, text, booleans, lists, dicts and pairs, equal texts once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "traces/base/output_file.h"

namespace shard {

/// The opcodes are those of CPython's Lib/pickletools.py. Calls give one value: between begin_list() and end_list() any
/// number of values, between begin_dict() and end_dict() keys and values in turn; finish() after exactly one.
class PickleWriter {
 public:
  explicit PickleWriter(OutputFile& out);

  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void boolean(bool value);
  void real(double value);
  void none();
  /// The two values just written become a tuple.
  void tuple_of_two();
  /// Bytes that are not UTF-8 are replaced: Python would refuse them.
  void text(std::string_view value);
  void begin_list();
  void end_list();
  void begin_dict();
  void end_dict();
  void finish();

  /// Names the value just written, to be repeated by again().
  [[nodiscard]] std::uint32_t remember();
  void again(std::uint32_t remembered);

 private:
  void little_endian(std::uint64_t value, int bytes);

  OutputFile& out_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t next_ = 0;
};

}  // namespace shard
