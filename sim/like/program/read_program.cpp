// One pass over the lines; what a program promises to its replay is checked here.
#include <array>
#include <charconv>
#include <optional>

#include "sim/like/program/program_file.h"
#include "traces/base/printable.h"
#include "traces/base/read_file.h"

namespace shard::like {
namespace {

constexpr Bytes kLargestFile{512 << 20};
/// Beyond any device; keeps sums within 64 bits.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMostTogether = std::int64_t{1} << 60;
constexpr std::int64_t kMostRanks = 1 << 30;
constexpr std::int64_t kMillion = 1'000'000;
/// Each has pools of its own, which every look for a block may meet.
constexpr std::int64_t kMostStreams = 4096;

/// Words of a line, taken off one by one.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::string_view next() {
    const std::size_t blank = rest_.find(' ');
    const std::string_view word = rest_.substr(0, blank);
    rest_ = blank == std::string_view::npos ? std::string_view() : rest_.substr(blank + 1);
    return word;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size() || value < least || value > most) return std::nullopt;
  return value;
}

/// The enumerator that to_string() calls so.
template <class Enum>
std::optional<Enum> called(std::string_view text, int count) {
  for (int i = 0; i < count; ++i)
    if (text == to_string(static_cast<Enum>(i))) return static_cast<Enum>(i);
  return std::nullopt;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char kind = i + 1 < text.size() ? text[++i] : ' ';
    unsigned byte = 0;
    if (kind == '\\' || kind == 'n') {
      out += kind == 'n' ? '\n' : kind;
    } else if (kind == 'x' && text.size() - i > 2 &&
               std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

class ProgramReader {
 public:
  ProgramReader(std::string_view text, std::string_view label) : text_(text), label_(label) {}

  Result<Program> run() {
    if (next_line() != kProgramHeader)
      return fault("the first line is not '" + std::string(kProgramHeader) + "'", "a file of --save-program");
    while (at_ < text_.size()) {
      if (ended_) return (next_line(), fault("there is more behind the end"));
      Fields fields(next_line());
      const std::string_view word = fields.next();
      const std::optional<std::string> wrong = read(word, fields);
      if (wrong) return fault(*wrong);
    }
    if (!ended_) return fault("the file is cut short: it has no 'end'", "the whole file");
    return std::move(program_);
  }

 private:
  using Fault = std::optional<std::string>;

  std::string_view next_line() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    at_ = std::min(end + 1, text_.size());
    ++line_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
  }

  [[nodiscard]] Error fault(std::string what, std::string help = {}) const {
    return {.code = Errc::malformed,
            .what = std::move(what),
            .where = std::string(label_) + ":" + std::to_string(line_),
            .help = std::move(help)};
  }
  static std::string bad(std::string_view what, std::string_view text) {
    constexpr std::size_t kShown = 40;
    return std::string(what) + " '" + printable_line(text.substr(0, kShown)) + "'";
  }

  Fault read(std::string_view word, Fields& fields) {
    if (word == "end") return end(fields);
    if (word == "name") return add_name(fields.rest());
    if (program_.steps.empty())
      if (const std::optional<Fault> origin = read_origin(word, fields)) return *origin;
    Fault wrong = read_step(word, fields);
    if (!wrong && !fields.empty()) return bad("more than belongs to the line:", fields.rest());
    if (!wrong && program_.steps.size() > static_cast<std::size_t>(INT32_MAX) - 1) return "too many steps";
    return wrong;
  }

  /// Nothing where the line is none of who wrote the program.
  std::optional<Fault> read_origin(std::string_view word, Fields& fields) {
    ProgramOrigin& origin = program_.origin;
    std::string* const text = word == "framework"   ? &origin.framework
                              : word == "model"     ? &origin.model
                              : word == "steps"     ? &origin.steps
                              : word == "allocator" ? &origin.allocator
                                                    : nullptr;
    if (text != nullptr) {
      const std::optional<std::string> value = unescaped(fields.rest());
      if (!value) return bad("a backslash that begins nothing in", fields.rest());
      *text = *value;
      return Fault{};
    }
    if (word == "addresses") {
      origin.addresses_upwards = fields.rest() == "up";
      return origin.addresses_upwards ? Fault{} : Fault(bad("addresses go up, not", fields.rest()));
    }
    if (word == "kernels") {
      origin.all_kernels = fields.rest() == "all";
      return origin.all_kernels ? Fault{} : Fault(bad("kernels are loaded all, not", fields.rest()));
    }
    std::int32_t* const to = word == "rank"          ? &origin.rank
                             : word == "world_size"  ? &origin.world_size
                             : word == "uncertainty" ? &origin.uncertainty_ppm
                                                     : nullptr;
    if (to == nullptr) return std::nullopt;
    const std::int64_t least = word == "world_size" ? 1 : 0;
    const std::optional<std::int64_t> number =
        whole_number(fields.rest(), least, word == "uncertainty" ? kMillion : kMostRanks);
    if (!number) return bad(std::string(word) + " is no such number:", fields.rest());
    *to = static_cast<std::int32_t>(*number);
    return Fault{};
  }

  Fault read_step(std::string_view word, Fields& fields) {
    if (word == "op") return read_operator(fields);
    if (word == "take") return read_take(fields);
    if (word == "back" || word == "let_go") return read_return(word == "back", fields);
    if (word == "phase") {
      const std::string_view text = fields.next();
      const std::optional<Phase> phase = called<Phase>(text, kPhaseCount);
      if (!phase) return bad("unknown phase", text);
      program_.begin_phase(*phase);
      return {};
    }
    if (word == "mark") return read_mark(fields);
    if (word == "empty_cache") return program_.empty_cache(), Fault{};
    if (word == "work") return read_work(fields);
    if (word == "collective") return read_collective(fields);
    if (word == "copy") return read_copy(fields);
    if (word == "wait") return read_wait(fields);
    return bad("unknown line", word);
  }

  Fault end(Fields& fields) {
    const auto steps = static_cast<std::int64_t>(program_.steps.size());
    if (whole_number(fields.rest(), 0, INT32_MAX) != steps)
      return bad("the file has " + std::to_string(steps) + " steps, and its end says", fields.rest());
    ended_ = true;
    return {};
  }

  Fault add_name(std::string_view text) {
    const std::optional<std::string> value = unescaped(text);
    if (!value) return bad("a backslash that begins nothing in", text);
    if (value->empty()) return "a name is empty";
    names_.push_back(program_.pool->text({*value}));
    return {};
  }

  /// Whether `text` is the number of a name; 0: none.
  bool name(std::string_view text, plan::Name& into) const {
    const std::optional<std::int64_t> number = whole_number(text, 0, static_cast<std::int64_t>(names_.size()));
    if (!number) return false;
    if (*number > 0) into = names_[static_cast<std::size_t>(*number) - 1];
    return true;
  }

  static bool number(std::string_view text, Bytes& into) {
    const std::optional<std::int64_t> value = whole_number(text, 0, kMostBytes);
    if (value) into = Bytes{*value};
    return value.has_value();
  }
  static bool stream(std::string_view text, ProgramStream& into) {
    const std::optional<std::int64_t> value = whole_number(text, 0, kMostStreams - 1);
    if (value) into = static_cast<ProgramStream>(*value);
    return value.has_value();
  }
  static bool memory(std::string_view text, Memory& into) {
    const std::optional<Memory> value = called<Memory>(text, kMemoryCount);
    if (value) into = *value;
    return value.has_value();
  }
  /// Sums of all that there is stay within 64 bits.
  bool counts(Bytes bytes) {
    together_ += bytes.count();
    return together_ <= kMostTogether;
  }

  Fault read_operator(Fields& fields) {
    Operator op;
    const std::string_view module = fields.next(), own = fields.next(), block = fields.next(), part = fields.next();
    if (!name(module, op.module)) return bad("no name has the number", module);
    if (!name(own, op.name)) return bad("no name has the number", own);
    const std::optional<std::int64_t> at = whole_number(block, -1, INT32_MAX);
    if (!at) return bad("no number of a block:", block);
    op.block = static_cast<std::int32_t>(*at);
    const std::optional<Part> of = called<Part>(part, kPartCount);
    if (!of) return bad("unknown part of a step", part);
    op.part = *of;
    program_.begin(op);
    return {};
  }

  Fault read_take(Fields& fields) {
    if (program_.operators.empty()) return "no op has begun, which would take it";
    Allocation a;
    const std::string_view bytes = fields.next(), category = fields.next();
    if (!number(bytes, a.bytes)) return bad("no size in bytes:", bytes);
    const std::optional<Category> of = called<Category>(category, kCategoryCount);
    if (!of) return bad("unknown category", category);
    a.category = *of;
    while (!fields.empty()) {
      const std::string_view option = fields.next();
      const std::size_t equals = std::min(option.find('='), option.size());
      const std::string_view key = option.substr(0, equals);
      const std::string_view value = equals < option.size() ? option.substr(equals + 1) : std::string_view();
      std::optional<std::int64_t> pool;
      const bool known = key == "name"     ? name(value, a.name)
                         : key == "memory" ? memory(value, a.memory)
                         : key == "stream" ? stream(value, a.stream)
                         : key == "pool"   ? (pool = whole_number(value, 0, UINT16_MAX)).has_value()
                                           : false;
      if (!known) return bad("of a take unknown", option);
      if (pool) a.pool = static_cast<std::uint16_t>(*pool);
    }
    if (!counts(a.bytes)) return "more bytes are taken than any device has";
    program_.take(a);
    states_.push_back(State::taken);
    return {};
  }

  Fault read_return(bool back, Fields& fields) {
    const std::string_view text = fields.next();
    const std::optional<std::int64_t> take =
        whole_number(text, 0, static_cast<std::int64_t>(program_.allocations.size()) - 1);
    if (!take) return bad("no take has the number", text);
    const BufferId id{static_cast<std::int32_t>(*take)};
    State& state = states_[static_cast<std::size_t>(*take)];
    if (state == State::given_back) return "take " + std::to_string(*take) + " was given back before";
    if (!back && (state != State::taken || program_.allocation(id).memory != Memory::device))
      return "take " + std::to_string(*take) + " cannot be let go";
    state = back ? State::given_back : State::let_go;
    back ? program_.give_back(id) : program_.let_go(id);
    return {};
  }

  Fault read_mark(Fields& fields) {
    ProgramMark mark;
    const std::string_view text = fields.next();
    if (!name(text, mark.name)) return bad("no name has the number", text);
    if (!fields.empty()) {
      const std::string_view word = fields.next();
      if (word != "again") return bad("of a mark unknown", word);
      mark.starts_again = true;
    }
    program_.mark(mark);
    return {};
  }

  Fault read_work(Fields& fields) {
    if (program_.operators.empty()) return "no op has begun, which would work";
    Work work;
    const std::string_view flops = fields.next(), from = fields.next(), to = fields.next(), queue = fields.next();
    double value = 0;
    const auto [last, wrong] = std::from_chars(flops.data(), flops.data() + flops.size(), value);
    constexpr double kMostFlops = 1e30;
    if (wrong != std::errc{} || last != flops.data() + flops.size() || !(value >= 0 && value <= kMostFlops))
      return bad("no number of flops:", flops);
    work.flops = Flops{value};
    if (!number(from, work.bytes_read)) return bad("no size in bytes:", from);
    if (!number(to, work.bytes_written)) return bad("no size in bytes:", to);
    if (!stream(queue, work.stream)) return bad("no stream:", queue);
    std::vector<ProgramOperand> operands;
    while (!fields.empty()) {
      const std::string_view text = fields.next();
      if (!read_operand(text, operands.emplace_back())) return bad("no operand:", text);
    }
    work.operands = program_.pool->keep(std::span<const ProgramOperand>(operands));
    program_.work(work);
    return {};
  }

  /// "3:r:2x4"
  bool read_operand(std::string_view text, ProgramOperand& into) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || !name(text.substr(0, colon), into.type)) return false;
    std::string_view rest = text.substr(colon + 1);
    if (!rest.starts_with("r:") && !rest.starts_with("w:")) return false;
    into.written = rest.front() == 'w';
    rest.remove_prefix(2);
    std::vector<std::int64_t> sizes;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('x'), rest.size());
      const std::optional<std::int64_t> size = whole_number(rest.substr(0, end), 0, kMostBytes);
      if (!size || end + 1 == rest.size()) return false;
      sizes.push_back(*size);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    into.sizes = program_.pool->keep(std::span<const std::int64_t>(sizes));
    return true;
  }

  Fault read_collective(Fields& fields) {
    CollectiveCall call;
    const std::string_view kind = fields.next(), bytes = fields.next(), ranks = fields.next(), group = fields.next(),
                           queue = fields.next();
    const std::optional<Collective> of = called<Collective>(kind, kCollectiveCount);
    if (!of) return bad("unknown collective", kind);
    call.kind = *of;
    if (!number(bytes, call.bytes) || !counts(call.bytes)) return bad("no size in bytes:", bytes);
    const std::optional<std::int64_t> many = whole_number(ranks, 1, kMostRanks);
    if (!many) return bad("no number of ranks:", ranks);
    call.ranks = static_cast<std::int32_t>(*many);
    if (!name(group, call.group)) return bad("no name has the number", group);
    if (!stream(queue, call.stream)) return bad("no stream:", queue);
    program_.collective(call);
    return {};
  }

  Fault read_copy(Fields& fields) {
    CopyCall call;
    const std::string_view from = fields.next(), to = fields.next(), bytes = fields.next(), queue = fields.next();
    if (!memory(from, call.from)) return bad("unknown memory", from);
    if (!memory(to, call.to)) return bad("unknown memory", to);
    if (!number(bytes, call.bytes)) return bad("no size in bytes:", bytes);
    if (!stream(queue, call.stream)) return bad("no stream:", queue);
    program_.copy(call);
    return {};
  }

  Fault read_wait(Fields& fields) {
    WaitCall call;
    const std::string_view who = fields.next(), behind = fields.next();
    call.host = who == "host";
    if (!call.host && !stream(who, call.stream)) return bad("no stream:", who);
    if (!stream(behind, call.for_stream)) return bad("no stream:", behind);
    program_.wait(call);
    return {};
  }

  enum class State : std::uint8_t { taken, let_go, given_back };

  std::string_view text_;
  std::string_view label_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
  bool ended_ = false;
  std::int64_t together_ = 0;
  std::vector<State> states_;  ///< by take
  std::vector<plan::Name> names_;
  Program program_;
};

}  // namespace

Result<Program> read_program(std::string_view text, std::string_view label) {
  return ProgramReader(text, label).run();
}

Result<Program> load_program(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, "program", kLargestFile);
  if (!text) return text.error();
  return read_program(*text, path.string());
}

}  // namespace shard::like
