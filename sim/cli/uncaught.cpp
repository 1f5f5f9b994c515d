// Little memory may be left: the last way out writes a fixed text.
#include "sim/cli/uncaught.h"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "traces/base/printable.h"
#include "traces/base/temporary_files.h"

namespace shard::cli {
namespace {

Error memory_is_short() {
  Error error{Errc::unavailable, "memory is short: no more could be allocated", "",
              "more memory, or a smaller problem: a smaller --global-batch takes fewer micro-steps"};
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    error.what += "; this process may have " + std::to_string(limit.rlim_cur >> 20U) + " MiB of addresses";
    error.help = "ulimit -v unlimited; " + error.help;
  }
  return error;
}

void say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

[[noreturn]] void terminated() {
  int code = exit_code(Errc::internal);
  try {
    const Error error = std::current_exception() == nullptr
                            ? Error{Errc::internal, "ended without an exception (std::terminate)", "", ""}
                            : uncaught_error();
    code = exit_code(error.code);
    say("shardscope: " + printable(to_string(error)) + "\n");
  } catch (...) {
    code = exit_code(Errc::unavailable);
    say("shardscope: memory is short\n");
  }
  temporary_files::remove_all();
  ::_exit(code);
}

}  // namespace

Error uncaught_error() {
  const char* help = "this is a fault of shardscope: report it with the command line";
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return memory_is_short();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return {Errc::unavailable, std::string("a thread could not be started: ") + error.what(), "",
              "fewer --threads or --ranks, or a higher limit (ulimit -u)"};
    if (error.code() == std::errc::not_enough_memory) return memory_is_short();
    return {Errc::internal, std::string("an error that nobody expected: ") + error.what(), "", help};
  } catch (const std::exception& error) {
    return {Errc::internal, std::string("an error that nobody expected: ") + error.what(), "", help};
  } catch (...) {
    return {Errc::internal, "an error that nobody expected, without a name", "", help};
  }
}

void install_terminate_handler() {
  std::set_terminate(terminated);
}

}  // namespace shard::cli
