// The hook gives a function; without one nothing is known, which is zeros.
#include "profiler/standin/absent.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "profiler/standin/device_memory.h"
#include "profiler/standin/exchange.h"
#include "profiler/standin/handles.h"

namespace shard::standin {
namespace {

/// What the hook answers.
constexpr int kTakeRule = 1, kEndProgram = 2;
using Ask = int (*)(const char* what, int has_rule);
std::atomic<Ask> ask{nullptr};

/// Python's own functions, which are in the program's process, not here.
template <class F>
F* of_python(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
}

/// Called by Python's main thread, before its next instruction.
int raise_in_python(void* text) {
  const auto set = of_python<void(void*, const char*)>("PyErr_SetString");
  void** const kind = of_python<void*>("PyExc_RuntimeError");
  if (set != nullptr && kind != nullptr) set(*kind, static_cast<const char*>(text));
  std::free(text);
  return -1;
}

}  // namespace

/// From within the program's call to a library there is no other way.
void raise_in_program(const std::string& text) {
  const auto later = of_python<int(int (*)(void*), void*)>("Py_AddPendingCall");
  if (later != nullptr) later(raise_in_python, ::strdup(("shardscope dryrun: " + text).c_str()));
}

std::shared_ptr<Source> absent(const std::string& what, std::optional<Bytes> as_equal) {
  return std::make_shared<Source>(
      [what, as_equal]() -> std::optional<Bytes> {
        const Ask hook = ask.load();
        if (hook == nullptr) return as_equal;
        const int answer = hook(what.c_str(), as_equal ? 1 : 0);
        if (answer == kEndProgram)
          raise_in_program("the host reads " + what +
                           ", and the other ranks do not run here. With --rank all they do; with --assume-zeros it "
                           "reads zeros");
        return answer == kTakeRule ? as_equal : std::nullopt;
      },
      as_equal);
}

}  // namespace shard::standin

using namespace shard::standin;

STANDIN void shardscope_standin_ask(int (*hook)(const char*, int)) {
  ask.store(hook);
}
/// 0: nobody knows what a piece holds; 1: the host wrote it; 2: others sent it, or would have.
STANDIN int shardscope_standin_state(const void* address, std::size_t bytes) {
  if (!is_device(address)) return 1;
  // Of a piece that others will send in part, the rest unknown, one rank alone may not decide; where the others run it
  // is what nobody knows.
  if (is_promised(address, bytes)) return others_run() && !will_have_values(address, bytes) ? 0 : 2;
  return has_values(address, bytes) ? 1 : 0;
}
/// A piece that is computed out of what absent ranks would have sent: `values`, if they had sent what this rank has;
/// nullptr where that is not known.
STANDIN void shardscope_standin_derive(void* address, const void* values, std::size_t bytes, const char* what) {
  if (!is_device(address)) return;
  std::optional<Bytes> as_equal;
  if (values != nullptr)
    as_equal = Bytes(static_cast<const std::byte*>(values), static_cast<const std::byte*>(values) + bytes);
  promise(address, bytes, absent(what, std::move(as_equal)));
}
/// What a piece holds, if absent ranks had sent what this one has; nobody is asked. 0 where that is not known.
STANDIN int shardscope_standin_if_equal(void* to, const void* from, std::size_t bytes) {
  const std::optional<Bytes> values = values_if_equal(from, bytes);
  if (!values) return 0;
  std::memcpy(to, values->data(), bytes);
  return 1;
}
/// To where the host computes in a kernel's place, and back.
STANDIN void shardscope_standin_copy(void* to, const void* from, std::size_t bytes) {
  copy_computed(to, from, bytes);
}
/// Something that nobody knows is written there.
STANDIN void shardscope_standin_forget(void* address, std::size_t bytes) {
  if (is_device(address)) forget_values(address, bytes);
}
