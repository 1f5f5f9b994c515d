// Mapping the file, and what is written into it once.
#include "executor/flight/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <unordered_set>

namespace shard::flight {
namespace {

std::int64_t ns_of(auto time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// Once each, an op of several phases too.
std::string names_of(const plan::Plan& plan) {
  std::string names;
  const auto add = [&](char kind, std::int64_t number, std::string_view name) {
    names.append(1, kind).append(" ").append(std::to_string(number)).append(" ");
    names.append(name).append("\n");
  };
  for (std::size_t unit = 0; unit < plan.units.size() && names.size() < kMostNameBytes; ++unit)
    add('u', static_cast<std::int64_t>(unit), plan.units[unit].name);
  std::unordered_set<std::int32_t> known;
  for (const plan::PhaseOps& phase : plan.phases)
    for (const plan::Op& op : phase.ops)
      if (names.size() < kMostNameBytes && known.insert(op.id.value).second) add('o', op.id.value, op.name);
  if (names.size() > kMostNameBytes) names.resize(names.rfind('\n', kMostNameBytes - 1) + 1);
  return names;
}

}  // namespace

Recorder::Recorder(void* mapping, std::size_t bytes)
    : mapping_(static_cast<std::byte*>(mapping)),
      bytes_(bytes),
      ring_(reinterpret_cast<std::uint64_t*>(mapping_ + kHeaderBytes)) {}

Recorder::~Recorder() {
  munmap(mapping_, bytes_);
}

Result<std::unique_ptr<Recorder>> Recorder::make(int descriptor, const Whose& whose, const plan::Plan& plan) {
  const auto failed = [](const char* what) {
    return Error{Errc::unavailable, std::string(what) + ": " + std::strerror(errno), "flight recorder", ""};
  };
  const std::string names = names_of(plan);
  const std::size_t bytes = kHeaderBytes + kRingBytes + names.size();
  // Room now, so that no store meets a full disk. Some file systems know no fallocate and are taken at their word.
  if (descriptor >= 0) {
    if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) return failed("no room for it");
    if (posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) == ENOSPC) {
      errno = ENOSPC;
      return failed("no room for it");
    }
  }
  const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  // Touched here, not in a step.
  void* const mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, descriptor, 0);
  if (mapping == MAP_FAILED) return failed("it cannot be mapped");
  std::unique_ptr<Recorder> made(new Recorder(mapping, bytes));
  std::memcpy(made->mapping_ + kHeaderBytes + kRingBytes, names.data(), names.size());
  Header header{.name_bytes = names.size(),
                .rank = whose.rank.value,
                .world = whose.world,
                .process = getpid(),
                .clock_ns = ns_of(std::chrono::steady_clock::now()),
                .wall_ns = ns_of(std::chrono::system_clock::now())};
  std::copy_n(whose.plan_hash.begin(), std::min(whose.plan_hash.size(), header.plan_hash.size()),
              header.plan_hash.begin());
  std::memcpy(made->mapping_, &header, sizeof header);
  return made;
}

Result<std::unique_ptr<Recorder>> Recorder::map(int descriptor, const Whose& whose, const plan::Plan& plan) {
  return make(descriptor, whose, plan);
}

Result<std::unique_ptr<Recorder>> Recorder::in_memory(const Whose& whose, const plan::Plan& plan) {
  return make(-1, whose, plan);
}

std::vector<std::byte> Recorder::snapshot() const {
  std::vector<std::byte> copy(mapping_, mapping_ + kHeaderBytes);
  copy.resize(bytes_);
  for (std::size_t i = 0; i < kRingBytes / sizeof(std::uint64_t); ++i) {
    const std::uint64_t word = std::atomic_ref(ring_[i]).load(std::memory_order_relaxed);
    std::memcpy(copy.data() + kHeaderBytes + i * sizeof word, &word, sizeof word);
  }
  std::copy(mapping_ + kHeaderBytes + kRingBytes, mapping_ + bytes_, copy.begin() + kHeaderBytes + kRingBytes);
  return copy;
}

}  // namespace shard::flight
