// Token by token: recordings have gigabytes. Names are those of libkineto (output_json.cpp) and of
// torch/csrc/profiler/collection.cpp.
#include "traces/import/kineto_program.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "traces/import/json_reader.h"

namespace shard::import {
namespace {

using Token = JsonReader::Token;

/// Lists within lists of numbers, as they are written: dimensions of tensors and of lists of tensors.
struct Numbers {
  std::vector<std::int64_t> numbers;
  std::vector<Numbers> lists;
};

constexpr std::size_t kMostInList = 4096;
constexpr std::size_t kMostText = 512;
constexpr std::int64_t kMostSize = std::int64_t{1} << 40;  ///< of a dimension, a stride or a grid

/// An event as far as it is needed.
struct Event {
  std::string phase, category, name, time, duration, thread, process;
  std::vector<Numbers> dims, strides;
  std::vector<std::string> types, values;
  std::int64_t external_id = -1, correlation = -1, stream = 0, bytes = -1;
  std::array<std::int64_t, 3> grid{}, block{};
  std::vector<std::int64_t> process_group;
};

/// "[0, 1, 2]".
std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  std::int64_t number = 0;
  bool open = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9' && number < (std::int64_t{1} << 40)) {
      number = number * 10 + (c - '0');
      open = true;
    } else if (open) {
      numbers.push_back(std::exchange(number, 0));
      open = false;
    }
  }
  return numbers;
}

bool is_complete(const Event& event, std::int64_t& begin, std::int64_t& duration) {
  return event.phase == "X" && thousandfold(event.time, begin) && thousandfold(event.duration, duration) &&
         duration >= 0;
}

class ProgramReader {
 public:
  explicit ProgramReader(ByteSource& source) : source_(source), json_(source) {}

  Result<KinetoProgram> run() {
    const Token first = json_.next();
    const bool is_right = first == Token::begin_array ? events() : first == Token::begin_object && document();
    if (!is_right)
      return Error{Errc::malformed, std::string("this is no recording of PyTorch's profiler: ") + json_.error(),
                   source_.label() + ": byte " + std::to_string(json_.at()), "a file in Chrome's trace format"};
    for (KinetoOperator& each : program_.operators) shift(each.begin_ns), shift(each.end_ns);
    for (KinetoKernel& each : program_.kernels) shift(each.begin_ns);
    for (KinetoCall& each : program_.calls) shift(each.begin_ns);
    return std::move(program_);
  }

 private:
  void shift(std::int64_t& time) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 61;
    time = std::clamp(time, -kMost, kMost) + std::clamp(base_ns_, -kMost, kMost);
  }

  /// Of an object whose begin has been read: `visit` is given each key and the first token of its value, and goes on to
  /// the value's end.
  template <class Visit>
  bool members(const Visit& visit) {
    for (;;) {
      const Token token = json_.next();
      if (token == Token::end_object) return true;
      if (token != Token::string) return false;
      const std::string key(json_.text());
      if (!visit(key, json_.next())) return false;
    }
  }

  bool document() {
    return members([this](const std::string& key, Token token) {
      if (key == "traceEvents" && token == Token::begin_array) return events();
      if (key == "deviceProperties" && token == Token::begin_array) return devices();
      if (key == "baseTimeNanoseconds" && token == Token::number) (void)to_integer(json_.text(), base_ns_);
      return json_.skip(token);
    });
  }

  /// Objects with a name each.
  bool devices() {
    for (;;) {
      Token token = json_.next();
      if (token == Token::end_array) return true;
      if (token != Token::begin_object) return false;
      for (token = json_.next(); token == Token::string; token = json_.next()) {
        const bool is_name = json_.text() == "name";
        token = json_.next();
        if (is_name && token == Token::string && program_.devices.size() < kMostInList)
          program_.devices.emplace_back(json_.text().substr(0, kMostText));
        if (!json_.skip(token)) return false;
      }
      if (token != Token::end_object) return false;
    }
  }

  bool events() {
    for (;;) {
      const Token token = json_.next();
      if (token == Token::end_array) return true;
      if (token != Token::begin_object) {
        if (!json_.skip(token)) return false;
        continue;
      }
      Event event;
      if (!read(event)) return false;
      take(event);
    }
  }

  bool read(Event& event) {
    return members([&](const std::string& key, Token token) {
      if (key == "args" && token == Token::begin_object)
        return members([&](const std::string& name, Token first) { return argument(event, name, first); });
      std::string* const to = key == "ph"     ? &event.phase
                              : key == "cat"  ? &event.category
                              : key == "name" ? &event.name
                              : key == "ts"   ? &event.time
                              : key == "dur"  ? &event.duration
                              : key == "tid"  ? &event.thread
                              : key == "pid"  ? &event.process
                                              : nullptr;
      if (to != nullptr && (token == Token::string || token == Token::number)) *to = json_.text();
      return json_.skip(token);
    });
  }

  bool argument(Event& event, const std::string& key, Token token) {
    if (token == Token::begin_array) {
      if (key == "Input Dims") return lists(event.dims);
      if (key == "Input Strides") return lists(event.strides);
      if (key == "Input type") return texts(event.types);
      if (key == "Concrete Inputs") return texts(event.values);
      if (key == "grid") return three(event.grid);
      if (key == "block") return three(event.block);
      return json_.skip(token);
    }
    std::int64_t* const to = key == "External id"   ? &event.external_id
                             : key == "correlation" ? &event.correlation
                             : key == "stream"      ? &event.stream
                             : key == "bytes"       ? &event.bytes
                                                    : nullptr;
    if (to != nullptr && (token == Token::number || token == Token::string)) (void)to_integer(json_.text(), *to);
    if (key == "Process Group Ranks" && token == Token::string) event.process_group = numbers_in(json_.text());
    return json_.skip(token);
  }

  /// The list's begin has been read.
  bool lists(std::vector<Numbers>& to) {
    Numbers read;
    if (!numbers(read, 0)) return false;
    to = std::move(read.lists);
    return true;
  }
  bool numbers(Numbers& to, int depth) {
    constexpr int kDeepest = 4;
    for (;;) {
      const Token token = json_.next();
      if (token == Token::end_array) return true;
      if (token == Token::begin_array) {
        Numbers inner;
        if (depth >= kDeepest ? !json_.skip(token) : !numbers(inner, depth + 1)) return false;
        if (to.lists.size() < kMostInList) to.lists.push_back(std::move(inner));
        continue;
      }
      std::int64_t number = 0;
      if (token == Token::number && to_integer(json_.text(), number) && to.numbers.size() < kMostInList)
        to.numbers.push_back(std::clamp<std::int64_t>(number, 0, kMostSize));
      if (!json_.skip(token)) return false;
    }
  }
  bool texts(std::vector<std::string>& to) {
    for (;;) {
      const Token token = json_.next();
      if (token == Token::end_array) return true;
      const bool is_text = token == Token::string || token == Token::number || token == Token::word;
      if (to.size() < kMostInList) to.emplace_back(is_text ? json_.text().substr(0, kMostText) : std::string_view());
      if (!json_.skip(token)) return false;
    }
  }
  bool three(std::array<std::int64_t, 3>& to) {
    Numbers read;
    if (!numbers(read, 0)) return false;
    for (std::size_t i = 0; i < to.size() && i < read.numbers.size(); ++i) to[i] = read.numbers[i];
    return true;
  }

  static void add_tensor(KinetoOperator& to, const Numbers& sizes, const Numbers* strides, const std::string& type,
                         std::size_t argument) {
    to.inputs.push_back({.sizes = sizes.numbers,
                         .strides = strides == nullptr ? std::vector<std::int64_t>() : strides->numbers,
                         .type = type,
                         .argument = static_cast<std::int32_t>(argument)});
  }

  static void tensors(const Event& event, KinetoOperator& to) {
    for (std::size_t i = 0; i < event.types.size() && i < event.dims.size(); ++i) {
      const std::string& type = event.types[i];
      if (type.empty() || type == "Scalar" || type == "ScalarList") continue;
      const Numbers* const strides = i < event.strides.size() ? &event.strides[i] : nullptr;
      const Numbers& dims = event.dims[i];
      if (dims.lists.empty()) {
        if (type != "TensorList") add_tensor(to, dims, strides, type, i);
        continue;
      }
      for (std::size_t j = 0; j < dims.lists.size(); ++j)
        add_tensor(to, dims.lists[j], strides != nullptr && j < strides->lists.size() ? &strides->lists[j] : nullptr,
                   type, i);
    }
  }

  void take(Event& event) {
    std::int64_t begin = 0, duration = 0, thread = 0;
    if (!is_complete(event, begin, duration)) return;
    if (event.category == "cpu_op" || event.category == "Operator") {
      (void)to_integer(event.thread, thread);
      KinetoOperator made{.name = std::move(event.name),
                          .begin_ns = begin,
                          .end_ns = begin + duration,
                          .thread = thread,
                          .external_id = event.external_id,
                          .correlation = event.correlation,
                          .inputs = {},
                          .values = std::move(event.values),
                          .process_group = std::move(event.process_group)};
      tensors(event, made);
      program_.operators.push_back(std::move(made));
      return;
    }
    if (event.category == "cuda_runtime" || event.category == "cuda_driver" || event.category == "Runtime") {
      (void)to_integer(event.thread, thread);
      program_.calls.push_back({.begin_ns = begin, .thread = thread, .correlation = event.correlation});
      return;
    }
    const bool is_kernel = event.category == "kernel" || event.category == "Kernel";
    if (!is_kernel && event.category != "gpu_memcpy" && event.category != "gpu_memset" && event.category != "Memcpy" &&
        event.category != "Memset")
      return;
    std::int64_t process = 0;
    (void)to_integer(event.process, process);
    program_.kernels.push_back({.name = std::move(event.name),
                                .category = is_kernel ? "kernel" : std::move(event.category),
                                .begin_ns = begin,
                                .duration_ns = duration,
                                .process = process,
                                .stream = event.stream,
                                .grid = event.grid,
                                .block = event.block,
                                .bytes = event.bytes,
                                .external_id = event.external_id,
                                .correlation = event.correlation});
  }

  ByteSource& source_;
  JsonReader json_;
  KinetoProgram program_;
  std::int64_t base_ns_ = 0;
};

}  // namespace

Result<KinetoProgram> read_kineto_program(ByteSource& source) {
  return ProgramReader(source).run();
}

Result<KinetoProgram> read_kineto_program(const std::filesystem::path& path) {
  Result<ByteSource> source = ByteSource::open(path);
  if (!source) return source.error();
  return read_kineto_program(*source);
}

}  // namespace shard::import
