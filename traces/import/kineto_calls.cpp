// Names of arguments are those of torch/csrc/profiler/util.h, which libkineto copies from calls to kernels.
#include "traces/import/kineto_calls.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "traces/import/json_reader.h"
#include "traces/import/kineto.h"

namespace shard::import {
namespace {

constexpr std::string_view kRecord = "record_param_comms";
/// Calls around one launch: c10d's operator, its record, the library's own.
constexpr std::size_t kNested = 8;

bool starts(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
}

bool is_call(std::string_view name) {
  return name == kRecord || starts(name, {"nccl:", "c10d::", "gloo:", "mpi:"});
}

/// Words of collectives at all: "c10d::barrier", not "c10d::_new_process_group".
constexpr std::array<std::pair<std::string_view, Activity>, 14> kWords = {{
    {"allgather", Activity::all_gather},
    {"reducescatter", Activity::reduce_scatter},
    {"allreduce", Activity::all_reduce},
    {"alltoall", Activity::all_to_all},
    {"all2all", Activity::all_to_all},
    {"sendrecv", Activity::send_receive},
    {"broadcast", Activity::broadcast},
    {"barrier", Activity::barrier},
    {"gather", Activity::gather},
    {"scatter", Activity::scatter},
    {"reduce", Activity::reduce},
    {"send", Activity::send},
    {"recv", Activity::receive},
    {"receive", Activity::receive},
}};

/// A kernel of a library for collectives: its name or, behind "void " and namespaces, a word in it.
bool is_collective_kernel(std::string_view name) {
  for (const std::string_view word : {"nccl", "rccl", "msccl"}) {
    for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      const char before = at == 0 ? ' ' : name[at - 1];
      if (at == 0 || before == ' ' || before == ':') return true;
    }
  }
  return false;
}

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  return b != 0 && a > kMost / b ? kMost : a * b;
}

/// Splits at semicolons.
template <class Visit>
void each_piece(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Bytes of the tensors of "Input Dims" and "Input type" (as chrome_events.h keeps them): of each, -1 where not known.
std::vector<std::int64_t> tensor_bytes(const ChromeEvent& event) {
  const Scalar *dims = event.argument("Input Dims"), *types = event.argument("Input type");
  std::vector<std::int64_t> bytes;
  if (dims == nullptr || types == nullptr) return bytes;
  each_piece(dims->text, [&](std::string_view piece) {
    std::int64_t elements = 0;
    bytes.push_back(!piece.empty() && to_integer(piece, elements) ? elements : -1);
  });
  std::size_t i = 0;
  each_piece(types->text, [&](std::string_view type) {
    if (i == bytes.size()) return;
    const std::int64_t each = element_bytes(type);
    bytes[i] = bytes[i] < 0 || each == 0 ? -1 : saturating_product(bytes[i], each);
    ++i;
  });
  for (; i < bytes.size(); ++i) bytes[i] = -1;
  return bytes;
}

/// The larger of what goes in and what comes out, as newer profilers say it; -1 where they do not.
std::int64_t told_bytes(const ChromeEvent& event) {
  const auto in = event.integer("In msg nelems"), out = event.integer("Out msg nelems");
  const Scalar* type = event.argument("dtype");
  if ((!in && !out) || type == nullptr) return -1;
  const std::int64_t each = element_bytes(type->text), elements = std::max(in.value_or(0), out.value_or(0));
  return each == 0 || elements < 0 ? -1 : saturating_product(elements, each);
}

/// The full buffer of a call, from what it was called with: an operator of c10d has its output and its input, a
/// library's call its inputs, which are a part of the full buffer where the call puts such parts together.
std::int64_t called_bytes(const ChromeEvent& event, Activity kind) {
  const std::vector<std::int64_t> tensors = tensor_bytes(event);
  const bool both = event.name.starts_with("c10d::");
  if (!both && (kind == Activity::all_gather || kind == Activity::gather || kind == Activity::scatter)) return -1;
  std::int64_t most = -1, sum = -1;
  for (const std::int64_t bytes : tensors) {
    if (bytes < 0) continue;
    most = std::max(most, bytes);
    sum = std::min(std::max<std::int64_t>(sum, 0) + bytes, std::int64_t{1} << 60);
  }
  return both ? most : sum;
}

/// Whether an id may be trusted: point-to-point kernels do all-to-alls, gathers and scatters too.
bool agree(Activity kernel, Activity call) {
  if (kernel == call || kernel == Activity::other_collective || call == Activity::other_collective) return true;
  const auto by_pairs = [](Activity a) {
    return a == Activity::all_to_all || a == Activity::gather || a == Activity::scatter || a == Activity::send ||
           a == Activity::receive || a == Activity::send_receive;
  };
  return (by_pairs(kernel) && by_pairs(call)) || call == Activity::barrier;
}

}  // namespace

Activity collective_named(std::string_view words) {
  std::string text;
  for (const char c : words.substr(0, 128)) {
    if (c == '_' || c == '-') continue;
    if (c == '(' || c == '<') break;  // of a kernel's name what comes before its arguments
    text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (const auto& [word, kind] : kWords)
    if (text.find(word) != std::string::npos) return kind;
  return Activity::other_collective;
}

std::int64_t element_bytes(std::string_view type) {
  if (type.starts_with("c10::")) type.remove_prefix(5);
  std::string word;
  for (const char c : type.substr(0, 40)) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, std::string_view(word)) != names.end();
  };
  if (is({"byte", "char", "bool", "unsigned char", "signed char", "int8", "uint8", "int8_t", "uint8_t"}) ||
      word.starts_with("float8"))
    return 1;
  if (is({"half", "bfloat16", "short", "float16", "int16", "int16_t", "uint16", "unsigned short"})) return 2;
  if (is({"float", "int", "float32", "int32", "int32_t", "uint32", "unsigned int", "complexhalf"})) return 4;
  if (is({"double", "long", "long int", "long long", "float64", "int64", "int64_t", "uint64", "complexfloat"}))
    return 8;
  return word == "complexdouble" ? 16 : 0;
}

Activity activity_of(std::string_view category, std::string_view name) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, category) != names.end();
  };
  if (is({"kernel", "Kernel"})) return is_collective_kernel(name) ? collective_named(name) : Activity::kernel;
  if (is({"gpu_memcpy", "mlu_memcpy", "Memcpy"})) return Activity::copy;
  if (is({"gpu_memset", "mlu_memset", "Memset"})) return Activity::fill;
  if (is({"cuda_sync", "cuda_event"})) return Activity::wait;
  if (is({"gpu_user_annotation", "mlu_user_annotation"})) return Activity::mark;
  if (is({"overhead", "Trace"})) return Activity::recording;
  if (is({"python_function"})) return Activity::python;
  if (category == "Runtime" || category.ends_with("_runtime") || category.ends_with("_driver"))
    return Activity::runtime;
  const bool operation = is({"cpu_op", "Operator"});
  if (!operation && category != "user_annotation") return Activity::unknown;
  // Of these two libraries there are no kernels to count: the call is what takes the time.
  if (starts(name, {"gloo:", "mpi:"})) return collective_named(name);
  return operation ? Activity::operation : Activity::annotation;
}

void KinetoCalls::add(const ChromeEvent& event, Builder& builder, RowId row, std::size_t number) {
  Span& span = builder.span(number);
  add_end(event, builder, row, span);
  const bool host = span.activity == Activity::operation || span.activity == Activity::annotation;
  if (is_collective(span.activity) ||
      (span.activity == Activity::kernel && event.argument("Collective name") != nullptr)) {
    if (is_call(event.name)) {
      add_call(event, row, span);
      span.bytes = std::max<std::int64_t>(calls_.back().bytes, 0);
      return;
    }
    Kernel kernel{.span = number, .correlation = event.integer("correlation").value_or(-1)};
    if (const Scalar* kind = event.argument("Collective name")) {
      span.activity = collective_named(kind->text);
      kernel.kind_told = span.activity != Activity::other_collective;
    }
    const std::int64_t bytes = told_bytes(event);
    if (bytes >= 0) span.bytes = bytes;
    if (bytes >= 0 && kernel.kind_told) return;
    // Older profilers give a kernel its own correlation for the id of what launched it.
    kernel.external = event.integer("External id").value_or(-1);
    if (kernel.external == kernel.correlation) kernel.external = -1;
    kernels_.push_back(kernel);
    builder.charge(sizeof(Kernel));
  } else if (host && is_call(event.name)) {
    add_call(event, row, span);
    builder.charge(sizeof(Call) + 64);
  } else if (span.activity == Activity::runtime && event.name.find("Launch") != std::string::npos) {
    if (const auto correlation = event.integer("correlation")) {
      launches_.emplace_back(*correlation, Launch{row, span.begin_ns});
      builder.charge(sizeof(launches_.front()));
    }
  }
}

void KinetoCalls::add_end(const ChromeEvent& event, Builder& builder, RowId row, const Span& span) {
  const bool on_device = span.activity == Activity::kernel || span.activity == Activity::copy ||
                         span.activity == Activity::fill ||
                         (is_collective(span.activity) && event.argument("stream") != nullptr);
  if (!on_device && span.activity != Activity::runtime) return;
  const auto correlation = event.integer("correlation");
  if (!correlation) return;
  ends_.push_back({*correlation, row, span.begin_ns, on_device});
  builder.charge(sizeof(End));
}

void KinetoCalls::join_launches(Builder& builder) const {
  if (builder.loaded.flow_event_count > 0) return;
  std::unordered_map<std::int64_t, const End*> calls;
  for (const End& end : ends_)
    if (!end.on_device) calls.try_emplace(end.correlation, &end);
  std::uint64_t key = 0;
  for (const End& end : ends_) {
    const auto call = end.on_device ? calls.find(end.correlation) : calls.end();
    if (call == calls.end() || call->second->time_ns > end.time_ns) continue;
    builder.flow(key, Builder::FlowEnd::start, call->second->row, call->second->time_ns, FlowKind::launch);
    builder.flow(key++, Builder::FlowEnd::finish, end.row, end.time_ns, FlowKind::launch);
  }
  builder.loaded.flow_event_count = 0;  // of the file's own
}

void KinetoCalls::add_call(const ChromeEvent& event, RowId row, const Span& span) {
  const Scalar* told = event.argument("Collective name");
  Call call{.row = row, .begin_ns = span.begin_ns, .end_ns = span.begin_ns + span.duration_ns};
  if (told != nullptr || event.name != kRecord) call.kind = collective_named(told == nullptr ? event.name : told->text);
  call.bytes = told_bytes(event);
  if (call.bytes < 0 && event.name != kRecord) call.bytes = called_bytes(event, call.kind);
  if (const auto external = event.integer("External id")) by_external_.try_emplace(*external, calls_.size());
  if (const auto rank = event.integer("Rank")) {
    several_ranks_ = several_ranks_ || (rank_ && *rank_ != *rank);
    rank_ = *rank;
  }
  calls_.push_back(call);
}

void KinetoCalls::take(const Call& call, const Kernel& kernel, Span& span) {
  if (!kernel.kind_told && call.kind != Activity::other_collective) span.activity = call.kind;
  if (span.bytes <= 0 && call.bytes > 0) span.bytes = call.bytes;
}

void KinetoCalls::settle(Builder& builder) {
  join_launches(builder);
  if (kernels_.empty() || calls_.empty()) return;
  std::sort(launches_.begin(), launches_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::size_t> order(calls_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(calls_[i].row, calls_[i].begin_ns, i); });
  const auto enclosing = [&](RowId row, std::int64_t time, const Kernel& kernel, Span& span) {
    auto at = std::ranges::upper_bound(order, std::tuple(row, time), {},
                                       [&](std::size_t i) { return std::tuple(calls_[i].row, calls_[i].begin_ns); });
    // From the innermost outwards.
    for (std::size_t looked = 0; at != order.begin() && looked < kNested; ++looked) {
      const Call& call = calls_[*--at];
      if (call.row != row) return;
      if (call.end_ns >= time) take(call, kernel, span);
    }
  };
  for (const Kernel& kernel : kernels_) {
    Span& span = builder.span(kernel.span);
    const auto at = by_external_.find(kernel.external);
    if (at != by_external_.end() && agree(span.activity, calls_[at->second].kind)) {
      const Call& call = calls_[at->second];
      take(call, kernel, span);
      enclosing(call.row, call.begin_ns, kernel, span);
    } else if (kernel.correlation >= 0) {
      const auto launch =
          std::ranges::lower_bound(launches_, kernel.correlation, {}, [](const auto& entry) { return entry.first; });
      if (launch != launches_.end() && launch->first == kernel.correlation)
        enclosing(launch->second.row, launch->second.time_ns, kernel, span);
    }
  }
}

}  // namespace shard::import
