// Lines from steps; a name is written before the line that has it first.
#include <array>
#include <charconv>
#include <unordered_map>

#include "sim/like/program/program_file.h"

namespace shard::like {
namespace {

/// A text on one line.
void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (byte < ' ' || byte == 0x7f)
      out.append("\\x") += {kHex[byte >> 4U], kHex[byte & 15U]};
    else
      out += c;
  }
}

class LineWriter {
 public:
  explicit LineWriter(const Program& program) : program_(program) {}

  std::string run() {
    out_.append(kProgramHeader) += '\n';
    const ProgramOrigin& from = program_.origin;
    origin("framework", from.framework);
    origin("model", from.model);
    origin("steps", from.steps);
    origin("allocator", from.allocator);
    line("world_size", from.world_size);
    line("rank", from.rank);
    if (from.addresses_upwards) line("addresses", "up");
    if (from.all_kernels) line("kernels", "all");
    if (from.uncertainty_ppm > 0) line("uncertainty", from.uncertainty_ppm);
    for (const Step& step : program_.steps) write(step);
    line("end", program_.steps.size());
    return std::move(out_);
  }

 private:
  void origin(std::string_view key, const std::string& text) {
    if (text.empty()) return;
    append_escaped(out_.append(key) += ' ', text);
    out_ += '\n';
  }

  /// Its number; written down where it is new.
  std::size_t name(std::string_view text) {
    if (text.empty()) return 0;
    const auto [known, fresh] = names_.try_emplace(text, names_.size() + 1);
    if (fresh) {
      append_escaped(out_ += "name ", text);
      out_ += '\n';
    }
    return known->second;
  }

  void field(std::string_view text) { (out_ += ' ').append(text); }
  void field(const char* text) { field(std::string_view(text)); }
  template <class Number>
  void field(Number number) {
    out_ += ' ';
    digits(number);
  }
  template <class Number>
  void digits(Number number) {
    std::array<char, 32> text{};
    const auto [end, fault] = std::to_chars(text.data(), text.data() + text.size(), number);
    out_.append(text.data(), end);
  }
  template <class... Fields>
  void line(std::string_view word, const Fields&... fields) {
    out_.append(word);
    (field(fields), ...);
    out_ += '\n';
  }
  template <class Number>
  void option(std::string_view key, Number number) {
    if (number == Number{}) return;
    out_.append(key);
    digits(number);
  }

  void write(const Step& step) {
    const auto at = static_cast<std::size_t>(step.at);
    switch (step.kind) {
      case StepKind::phase: return line("phase", to_string(static_cast<Phase>(step.at)));
      case StepKind::begin: return write(program_.operators[at]);
      case StepKind::take: return write(program_.allocations[at]);
      case StepKind::give_back: return line("back", step.at);
      case StepKind::let_go: return line("let_go", step.at);
      case StepKind::work: return write(program_.works[at]);
      case StepKind::collective: return write(program_.collectives[at]);
      case StepKind::copy: return write(program_.copies[at]);
      case StepKind::wait: return write(program_.waits[at]);
      case StepKind::mark: return write(program_.marks[at]);
      case StepKind::empty_cache: return line("empty_cache");
    }
  }

  void write(const Operator& op) {
    const std::size_t module = name(op.module), own = name(op.name);
    line("op", module, own, op.block, to_string(op.part));
  }

  void write(const Allocation& a) {
    const std::size_t own = name(a.name);
    out_ += "take";
    field(a.bytes.count());
    field(to_string(a.category));
    option(" name=", own);
    if (a.memory != Memory::device) out_.append(" memory=").append(to_string(a.memory));
    option(" stream=", a.stream);
    option(" pool=", a.pool);
    out_ += '\n';
  }

  void write(const Work& work) {
    for (const ProgramOperand& operand : work.operands) name(operand.type);
    out_ += "work";
    field(work.flops.count());
    field(work.bytes_read.count());
    field(work.bytes_written.count());
    field(work.stream);
    for (const ProgramOperand& operand : work.operands) {
      field(name(operand.type));
      out_ += operand.written ? ":w:" : ":r:";
      for (std::size_t i = 0; i < operand.sizes.size(); ++i) {
        if (i > 0) out_ += 'x';
        digits(operand.sizes[i]);
      }
    }
    out_ += '\n';
  }

  void write(const CollectiveCall& call) {
    const std::size_t group = name(call.group);
    line("collective", to_string(call.kind), call.bytes.count(), call.ranks, group, call.stream);
  }
  void write(const CopyCall& call) {
    line("copy", to_string(call.from), to_string(call.to), call.bytes.count(), call.stream);
  }
  void write(const WaitCall& call) {
    if (call.host)
      line("wait", "host", call.for_stream);
    else
      line("wait", call.stream, call.for_stream);
  }
  void write(const ProgramMark& mark) {
    const std::size_t own = name(mark.name);
    if (mark.starts_again)
      line("mark", own, "again");
    else
      line("mark", own);
  }

  const Program& program_;
  std::string out_;
  std::unordered_map<std::string_view, std::size_t> names_;
};

}  // namespace

std::string to_text(const Program& program) {
  return LineWriter(program).run();
}

}  // namespace shard::like
