// Values are taken token by token; strings beyond what a trace needs are cut.
#include "traces/import/chrome_events.h"

#include <utility>

namespace shard::import {
namespace {

constexpr std::size_t kMaxArguments = 256;
constexpr std::size_t kMaxArgumentText = 4096;
constexpr std::size_t kMaxKey = 256;

/// What calls of collectives are made with, in recordings whose kernels do not say it.
bool tells_tensors(std::string_view event, std::string_view key) {
  if (key != "Input Dims" && key != "Input type") return false;
  for (const std::string_view word : {"nccl:", "c10d::", "gloo:", "mpi:"})
    if (event.starts_with(word)) return true;
  return event.empty();
}

}  // namespace

bool ChromeEvents::next() {
  for (;;) {
    switch (where_) {
      case Where::start: begin(); break;
      case Where::document: member(); break;
      case Where::list:
        if (element()) return true;
        break;
      case Where::end: return false;
    }
  }
}

void ChromeEvents::stop(std::uint64_t offset, std::string why) {
  where_ = Where::end;
  if (!stopped_) stopped_ = Truncated{offset, std::move(why)};
}

bool ChromeEvents::fail() {
  stop(json_.at(), *json_.error() == '\0' ? "is neither an object nor a list of events" : json_.error());
  return false;
}

void ChromeEvents::finish() {
  where_ = Where::end;
  if (json_.next() != Token::end) {
    fail();
  } else if (!source_.fault().empty()) {
    stop(source_.offset(), source_.fault());
  }
}

void ChromeEvents::begin() {
  const Token first = json_.next();
  listed_ = first == Token::begin_array;
  in_document_ = first == Token::begin_object;
  where_ = listed_ ? Where::list : Where::document;
  if (!listed_ && !in_document_) fail();
}

void ChromeEvents::member() {
  Token token = json_.next();
  if (token == Token::end_object) return finish();
  bool ok = token == Token::string;
  const std::string key(json_.text().substr(0, kMaxKey));
  if (ok) token = json_.next();
  if (!ok) {
  } else if (key == "traceEvents" && token == Token::begin_array) {
    listed_ = true;
    where_ = Where::list;
  } else if (token == Token::begin_object && key != "stackFrames") {
    kineto_ = kineto_ || key == "distributedInfo";
    ok = read_metadata(key + ".", 3);
  } else if (token == Token::begin_object || token == Token::begin_array) {
    kineto_ = kineto_ || key == "deviceProperties";
    ok = json_.skip(token);
  } else {
    Scalar value;
    ok = take_scalar(token, value);
    if (ok) keep(key, value);
  }
  if (!ok) fail();
}

bool ChromeEvents::element() {
  const Token token = json_.next();
  if (token == Token::end_array) {
    if (in_document_) {
      where_ = Where::document;
    } else {
      finish();
    }
    return false;
  }
  if (token == Token::begin_object) {
    event_.clear();
    return read_event() || fail();
  }
  if (!json_.skip(token)) fail();
  return false;
}

bool ChromeEvents::take_scalar(Token token, Scalar& into) {
  if (token != Token::string && token != Token::number && token != Token::word) return json_.skip(token);
  into.number = token == Token::number;
  into.text.assign(json_.text().substr(0, kMaxArgumentText));
  return true;
}

/// Scalars of an object and of those inside it, as "object.key".
bool ChromeEvents::read_metadata(const std::string& prefix, int levels) {
  for (;;) {
    Token token = json_.next();
    if (token == Token::end_object) return true;
    if (token != Token::string) return false;
    const std::string key = prefix + std::string(json_.text().substr(0, kMaxKey));
    token = json_.next();
    if (token == Token::begin_object && levels > 1) {
      if (!read_metadata(key + ".", levels - 1)) return false;
      continue;
    }
    Scalar value;
    const bool scalar = token == Token::string || token == Token::number || token == Token::word;
    if (!take_scalar(token, value)) return false;
    if (scalar) keep(key, value);
  }
}

void ChromeEvents::keep(const std::string& key, const Scalar& value) {
  if (metadata_.size() < 4096) metadata_[key] = value.text;
}

std::string* ChromeEvents::field(std::string_view key) {
  if (key == "ph") return &event_.phase;
  if (key == "name") return &event_.name;
  if (key == "cat") return &event_.category;
  if (key == "pid") return &event_.pid;
  if (key == "tid") return &event_.tid;
  if (key == "ts") return &event_.time;
  if (key == "dur") return &event_.duration;
  if (key == "id") return &event_.id;
  if (key == "s") return &event_.scope;
  if (key == "bind_id") return &event_.bound_id;
  if (key == "flow_in") return &event_.flow_in;
  if (key == "flow_out") return &event_.flow_out;
  return nullptr;
}

bool ChromeEvents::read_event() {
  for (;;) {
    Token token = json_.next();
    if (token == Token::end_object) return true;
    if (token != Token::string) return false;
    std::string* into = field(json_.text());
    const bool arguments = into == nullptr && json_.text() == "args";
    const bool scoped_id = into == nullptr && json_.text() == "id2";
    token = json_.next();
    if (into != nullptr && (token == Token::string || token == Token::number || token == Token::word)) {
      into->assign(json_.text());
    } else if ((arguments || scoped_id) && token == Token::begin_object) {
      if (!read_arguments(scoped_id)) return false;
    } else if (!json_.skip(token)) {
      return false;
    }
  }
}

/// Scalars of args; of id2 the one id, which says whether it is the process's own.
bool ChromeEvents::read_arguments(bool scoped_id) {
  for (;;) {
    Token token = json_.next();
    if (token == Token::end_object) return true;
    if (token != Token::string) return false;
    const bool kept = !scoped_id && event_.argument_count < kMaxArguments;
    if (kept && event_.argument_count == event_.arguments.size()) event_.arguments.emplace_back();
    Argument* argument = kept ? &event_.arguments[event_.argument_count] : nullptr;
    if (kept) argument->key.assign(json_.text().substr(0, kMaxArgumentText));
    const bool local = scoped_id && json_.text() == "local";
    if (scoped_id && json_.text() == "global") event_.global_id = true;
    token = json_.next();
    const bool scalar = token == Token::string || token == Token::number || token == Token::word;
    if (scalar && kept) {
      argument->value.number = token == Token::number;
      argument->value.text.assign(json_.text().substr(0, kMaxArgumentText));
      ++event_.argument_count;
    } else if (kept && token == Token::begin_array && tells_tensors(event_.name, argument->key)) {
      argument->value.number = false;
      if (!read_tensors(argument->value.text)) return false;
      ++event_.argument_count;
    } else if (scalar && scoped_id) {
      event_.id = (local ? "local " : "") + std::string(json_.text().substr(0, kMaxArgumentText));
    } else if (!json_.skip(token)) {
      return false;
    }
  }
}

bool ChromeEvents::read_tensors(std::string& into) {
  into.clear();
  const auto add = [&](std::string_view piece) {
    if (into.size() + piece.size() < kMaxArgumentText) into.append(piece) += ';';
  };
  for (;;) {
    Token token = json_.next();
    if (token == Token::end_array) return true;
    if (token == Token::string) {
      add(json_.text());
    } else if (token == Token::begin_array) {
      std::int64_t elements = 1, dimension = 0;
      std::size_t count = 0;
      bool flat = true;
      while ((token = json_.next()) != Token::end_array) {
        flat = flat && token == Token::number && to_integer(json_.text(), dimension) && dimension >= 0 &&
               (dimension == 0 || elements <= (std::int64_t{1} << 60) / dimension);
        if (flat) elements *= dimension;
        ++count;
        if (token != Token::number && !json_.skip(token)) return false;
      }
      add(flat && count > 0 ? std::to_string(elements) : std::string());
    } else {
      add("");
      if (!json_.skip(token)) return false;
    }
  }
}

}  // namespace shard::import
