// A program as shardscope-train is one: `job_program N FAULT TRANSPORT` starts N ranks of itself; FAULT befalls rank 1.
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "executor/comm/in_process.h"
#include "executor/comm/mpi.h"
#include "executor/launch/job.h"
#include "executor/launch/parent_line.h"
#include "executor/launch/rank_watch.h"
#include "executor/launch/role.h"
#include "traces/base/run_place.h"
#include "traces/base/stop.h"

namespace {

using namespace shard;

/// What rank 1 does in the middle of the run.
Result<void> commit(std::string_view fault, Communicator& comm) {
  if (comm.rank() != Rank{1}) return {};
  if (fault == "kill") raise(SIGKILL);
  if (fault == "abort") std::abort();
  if (fault == "quit") _exit(7);
  if (fault == "hang")
    while (true) pause();
  if (fault == "stopped") raise(SIGSTOP);
  if (fault == "malformed") return Error{Errc::malformed, "token 300 is not in the vocabulary", "data.bin:7", ""};
  return {};
}

constexpr std::chrono::seconds kShort{2};

std::chrono::milliseconds deadline_for(std::string_view fault) {
  return fault == "hang" || fault.starts_with("stopped") ? kShort : std::chrono::seconds{60};
}

Result<void> run(std::string_view fault, std::string_view transport) {
  std::unique_ptr<Communicator> made;
  if (role_from_environment()->launcher == Launcher::none) {
    made = make_single();
  } else {
    auto mpi = make_mpi(transport == "messages" ? MpiTransport::messages : MpiTransport::shared,
                        {.deadline = deadline_for(fault)});
    if (!mpi) return mpi.error();
    made = *std::move(mpi);
  }
  Communicator& comm = *made;
  const stop::Registration cause = stop::with_cause([&] { return comm.lost_peer(); });
  const auto arena = comm.make_arena(Bytes{fault == "large" ? std::int64_t{1} << 50 : 4096});
  if (!arena) return arena.error();
  const std::vector<CommSegment> segments{{0, 1024, Elems{4 * comm.size()}}};
  const int steps = fault == "forever" ? 1'000'000'000 : 20;
  for (int step = 0; step < steps; ++step) {
    set_run_place({RunPart::step, step + 1});
    if (step == 10) {
      // Where this run leaves traces, for a test that looks whether they are gone.
      const char* files = std::getenv("OMPI_MCA_btl_vader_backing_directory");
      std::printf("rank %d process %d files %s\n", comm.rank().value, static_cast<int>(getpid()),
                  files == nullptr ? "-" : files);
      std::fflush(stdout);
      // All have spoken before anything happens.
      if (const auto spoken = comm.exchange({}); !spoken) return spoken.error();
      if (Result<void> fine = commit(fault, comm); !fine) {
        comm.abort(to_string(fine.error()));
        return fine;
      }
    }
    const Result<Ticket> ticket = comm.start({.op = OpId{step}, .kind = Collective::all_gather, .segments = segments});
    if (!ticket) return ticket.error();
    if (Result<void> done = comm.wait(*ticket); !done) return done;
  }
  return {};
}

void say_stopped(const Error& error) {
  std::fprintf(stderr, "%s\n", to_string(error).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const stop::SignalThread signals(say_stopped);
  int ranks = 0;
  std::from_chars(argv[1], argv[1] + std::string_view(argv[1]).size(), ranks);
  const Role role = *role_from_environment();
  if (role.launcher == Launcher::none && ranks > 1) {
    const std::vector<std::string> self = {own_program(), argv[1], argv[2], argv[3]};
    const auto print = [](const JobEnd& end) {
      std::fprintf(stderr, "%s\n", end.noticed ? to_string(*end.noticed).c_str() : end.message.c_str());
    };
    const Result<JobEnd> end = run_job(self, {.ranks = ranks, .deadline = deadline_for(argv[2]), .answer = print});
    if (!end) return std::fprintf(stderr, "%s\n", to_string(end.error()).c_str()), exit_code(end.error().code);
    return end->exit_code;
  }
  const std::string_view fault = argv[2];
  if (fault == "stopped-before-coming" && role.rank == Rank{1}) raise(SIGSTOP);
  std::shared_ptr<ParentLine> line;
  stop::Registration watch = watch_blocking_calls(role.rank, deadline_for(fault));
  if (role.launcher == Launcher::own) {
    auto connected = ParentLine::connect(role);
    if (!connected) return exit_code(connected.error().code);
    line = *std::move(connected);
    stop::with_say([line](const Error& e) { line->report(exit_code(e.code), to_string(e)); }).keep();
    watch = watch_for_parent(*line);
  }
  set_run_place({RunPart::joining});
  if (fault == "stopped-before-joining" && role.rank == Rank{1}) raise(SIGSTOP);
  const Result<void> result = run(fault, argv[3]);
  const int code = result ? 0 : exit_code(result.error().code);
  const std::string message = result ? "" : to_string(result.error());
  if (line) {
    line->report(code, message);
    // As train does: mpirun ends the others when one returns, perhaps before the rank that knows the cause has spoken.
    if (code == exit_code(Errc::retryable)) line->let_others_end_first();
  } else if (!result) {
    std::fprintf(stderr, "%s\n", message.c_str());
  }
  return code;
}
