// The run's folder holds: the stand-in, a library of functions that it does not know, the hook, and what comes back.
#include "profiler/dryrun/dry_run.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <sstream>

#include "profiler/dryrun/collect.h"
#include "profiler/dryrun/environment.h"
#include "profiler/dryrun/imports.h"
#include "profiler/dryrun/resources.h"
#include "profiler/dryrun/stub_library.h"

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;

Result<void> write(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (out) return {};
  return Error{Errc::io, "the run's files cannot be written", path.string(), "room in TMPDIR"};
}

/// The functions that the program's libraries import and the stand-in lacks. What they ask for by name is made up when
/// they ask (standin/lookup.cpp).
Result<std::set<std::string>> functions_to_make_up(const PyTorch& pytorch, const fs::path& standin) {
  const Result<std::set<std::string>> known = exported_functions(standin);
  if (!known) return known.error();
  std::set<std::string> missing;
  const auto add = [&](const std::set<std::string>& names) {
    std::ranges::set_difference(names, *known, std::inserter(missing, missing.end()));
  };
  for (const fs::path& library : libraries_of(pytorch)) {
    const Result<std::set<std::string>> imported = imported_functions(library);
    if (!imported) continue;  // one that nobody may read is none of the program's
    add(*imported);
  }
  // Compiled while the program runs, and then imported.
  for (const fs::path& source : sources_of_triton(pytorch)) add(named_functions(source));
  return missing;
}

/// Without the stand-in a program that found no GPU says nothing about one that has it. One that was ended at once may
/// not have come so far.
Result<void> check_loaded(const std::vector<std::string>& program, const Ended& ended, const Place& place,
                          const fs::path& folder) {
  std::error_code error;
  if (ended.timed_out || ended.signal != 0) return {};
  for (const int rank : place.ranks)
    if (fs::exists(folder_of(rank, folder) / kMark, error)) return {};
  return Error{Errc::unavailable,
               "the stand-in GPU was not loaded into the program: it is linked statically, runs as another user, or "
               "libraries in the folder of the run's files cannot be loaded",
               program.front() + ", " + folder.string(),
               "a program that the loader starts (python3 train.py); else set TMPDIR to a folder that is not mounted "
               "noexec"};
}

/// The program nvidia-smi. A line "#!" would take no blank in the interpreter's path.
Result<void> write_smi(const PyTorch& pytorch, const fs::path& programs) {
  std::error_code error;
  fs::create_directories(programs, error);
  std::string quoted = pytorch.python;
  for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) quoted.replace(at, 1, "'\\''");
  const std::string text = "#!/bin/sh\nexec '" + quoted + "' -I -S \"${0%/*}/../hook/smi.py\" \"$@\"\n";
  const fs::path path = programs / "nvidia-smi";
  if (const Result<void> done = write(path, std::as_bytes(std::span(text))); !done) return done.error();
  fs::permissions(path, fs::perms::owner_exec, fs::perm_options::add, error);
  return {};
}

/// What all processes find in the run's folder.
Result<void> write_files(const PyTorch& pytorch, const Place& place, const fs::path& folder) {
  std::error_code error;
  for (const int rank : place.ranks) fs::create_directories(folder_of(rank, folder), error);
  fs::create_directories(exchange_folder(folder), error);
  fs::create_directories(folder / "hook", error);
  if (const Result<void> done = write(folder / kStandIn, standin_library()); !done) return done.error();
  for (const PythonFile& file : python_files())
    if (const Result<void> done = write(folder / "hook" / file.name, file.content); !done) return done.error();
  const Result<std::set<std::string>> missing = functions_to_make_up(pytorch, folder / kStandIn);
  if (!missing) return missing.error();
  const std::vector<std::byte> made_up =
      stub_library(*missing, kDriver, {.library = kStandIn, .handler = "shardscope_standin_unknown"});
  if (const Result<void> done = write(folder / kDriver, made_up); !done) return done.error();
  // Who opens it finds the stand-in's functions, which it needs.
  const std::vector<std::byte> nothing =
      stub_library({}, kNvml, {.library = kStandIn, .handler = "shardscope_standin_unknown"});
  if (const Result<void> done = write(folder / kNvml, nothing); !done) return done.error();
  return write_smi(pytorch, folder / kPrograms);
}

/// The program as python/ranks.py starts it, and what that reads.
Result<std::vector<std::string>> side_by_side(const std::vector<std::string>& program, const PyTorch& pytorch,
                                              const Place& place, const fs::path& folder) {
  nlohmann::json spec{{"exchange", exchange_folder(folder)}, {"ranks", nlohmann::json::array()}};
  for (const int rank : place.ranks)
    spec["ranks"].push_back({{"rank", rank},
                             {"folder", folder_of(rank, folder)},
                             {"environment", environment_of(pytorch, place, rank, folder)}});
  const fs::path path = folder / "ranks.json";
  const std::string text = spec.dump();
  if (const Result<void> done = write(path, std::as_bytes(std::span(text))); !done) return done.error();
  std::vector<std::string> words{pytorch.python, "-I", folder / "hook" / "ranks.py", path};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

}  // namespace

Result<Ended> dry_run(const std::vector<std::string>& program, const Place& place, const std::string& python,
                      const fs::path& folder, const Started& how, const Each& each) {
  const Result<PyTorch> pytorch = pytorch_of(program, python);
  if (!pytorch) return pytorch.error();
  if (const Result<void> done = write_files(*pytorch, place, folder); !done) return done.error();
  Started started = how;
  std::vector<std::string> words = program;
  if (place.ranks.size() == 1) {
    started.environment.merge(environment_of(*pytorch, place, place.ranks.front(), folder));
  } else {
    Result<std::vector<std::string>> launched = side_by_side(program, *pytorch, place, folder);
    if (!launched) return launched.error();
    words = std::move(*launched);
  }
  Result<profiler::Ended> ended = profiler::run_to_its_end(words, started);
  if (!ended) return ended.error();
  if (const Result<void> loaded = check_loaded(program, *ended, place, folder); !loaded) return loaded.error();
  for (const int rank : place.ranks) {
    DryRun run;
    run.pytorch = *pytorch;
    run.rank = rank;
    run.ended = *ended;
    collect(folder_of(rank, folder), run);
    if (const Result<void> told = each(std::move(run)); !told) return told.error();
  }
  return ended;
}

}  // namespace shard::dryrun
