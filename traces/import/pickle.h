// Reads the data of a Python pickle and executes nothing: classes and calls become values that do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/import/byte_source.h"

namespace shard::import {

/// Protocols 0 to 5 (opcodes: Lib/pickletools.py of CPython). Lists, tuples, dicts, strings, numbers and what the memo
/// shares between them. GLOBAL, REDUCE, BUILD and their like give Kind::inert, or, where objects are kept, say what
/// would have been called with what. Values live in the reader. What it holds is at most 64 MiB + 4 times the input.
class PickleReader {
 public:
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    string,
    list,
    dict,
    inert,
    global,     ///< a class or function that is named: name()
    object,     ///< what a call would have made: made()
    reference,  ///< to what lies outside of the pickle: items() has its identifier alone
  };
  enum class Objects : std::uint8_t { inert, kept };

  /// 60 bits and a kind. Integers beyond +-2^59 are cut to that.
  class Value {
   public:
    Value() = default;
    Value(Kind kind, std::int64_t payload)
        : bits_(static_cast<std::uint64_t>(payload) << 4 | static_cast<unsigned>(kind)) {}
    [[nodiscard]] Kind kind() const { return static_cast<Kind>(bits_ & 15); }
    [[nodiscard]] std::int64_t payload() const { return static_cast<std::int64_t>(bits_) >> 4; }

   private:
    std::uint64_t bits_ = 0;
  };

  /// What a dict holds under a key is replaced as soon as it comes, and the items of a list are freed: where it is most
  /// of a file (a snapshot's stacks) and says the same over and over. `of` may see a list again that it has seen
  /// before, then without items: the memo shares it.
  struct Fold {
    std::string key;
    std::function<Value(Value)> of;
  };
  explicit PickleReader(ByteSource& source, Fold fold = {}) : source_(source), fold_(std::move(fold)) {}
  PickleReader(ByteSource& source, Objects objects) : source_(source), objects_(objects) {}

  /// Reads up to STOP. False where the pickle is damaged or cut: error() says why and at() where; result() is then what
  /// was complete, as far as the outermost containers go.
  [[nodiscard]] bool run();
  [[nodiscard]] Value result() const { return stack_.empty() ? Value() : stack_.back(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::uint64_t at() const { return at_; }

  /// A call that was not made.
  struct Made {
    Value callable;                ///< a global, mostly
    Value arguments;               ///< a list, mostly
    Value state;                   ///< what BUILD gives it; none without
    std::span<const Value> items;  ///< what was put into it then: keys and values in turn, or a list's items
  };

  /// Items of a list (or tuple), keys and values in turn of a dict; empty for anything else.
  [[nodiscard]] std::span<const Value> items(Value value) const;
  /// Of a string, else "".
  [[nodiscard]] std::string_view text(Value value) const;
  /// "torch._utils._rebuild_tensor_v2" of a global, else "".
  [[nodiscard]] std::string_view name(Value value) const;
  /// Of an object.
  [[nodiscard]] std::optional<Made> made(Value value) const;
  [[nodiscard]] std::optional<std::int64_t> integer(Value value) const;
  [[nodiscard]] std::optional<double> real(Value value) const;
  /// Frees the items of a list or dict, for all that share it.
  void release(Value value);
  /// The last value of that key of a dict.
  [[nodiscard]] std::optional<Value> find(Value dict, std::string_view key) const;

 private:
  struct Text {
    std::uint64_t at = 0;
    std::uint64_t size = 0;
  };

  /// One opcode: of the stack, containers and the memo, of values, of objects that stay inert, and of those that are
  /// kept.
  bool step(int opcode, bool& stopped);
  bool push_scalar(int opcode);
  bool make_object(int opcode);
  bool keep_object(int opcode);
  bool push_global(const std::string& module, const std::string& name);
  bool fail(const std::string& why);
  bool push(Value value);
  bool push_text(std::uint64_t size);
  bool push_line(bool quoted);
  bool push_long(std::uint64_t bytes);
  bool push_integer(std::int64_t value);
  bool push_number_line(bool real);
  bool push_real(double value);
  bool push_container(Kind kind, std::size_t from);
  bool number(int bytes, std::uint64_t& value);
  bool line(std::string& text);
  /// Items above the last mark, which is taken away.
  bool pop_mark(std::size_t& from);
  bool need(std::size_t count);
  bool append(std::size_t target, std::size_t from);
  bool get(std::uint64_t index);
  bool put(std::uint64_t index);
  bool charge(std::uint64_t bytes);
  void fold(std::size_t from);
  void close_all();

  ByteSource& source_;
  Fold fold_;
  Objects objects_ = Objects::inert;
  // Deques, which grow without a second copy of themselves.
  std::deque<Value> stack_;
  std::size_t stack_peak_ = 0;
  std::deque<std::size_t> marks_;
  std::deque<Value> memo_;
  std::unordered_map<std::uint64_t, Value> far_memo_;  // indices far beyond those used so far
  std::deque<std::vector<Value>> containers_;
  std::string characters_;
  std::deque<Text> texts_;
  std::deque<double> reals_;
  std::uint64_t charged_ = 0;
  bool full_ = false;  // nothing more may be made
  std::string error_;
  std::uint64_t at_ = 0;
};

}  // namespace shard::import
