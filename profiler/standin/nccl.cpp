// NCCL: what a call sends is handed to the other ranks where they run, and what they sent is there when the host looks.
// Nothing waits before that, since a device would not either. A rank whose others do not run knows only itself.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "profiler/standin/absent.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/exchange.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/reduce.h"
#include "profiler/standin/values.h"
#include "profiler/standin/work.h"

using namespace shard::standin;

namespace {

constexpr int kUint8 = 1;

enum Kind : std::int32_t {
  kAllReduce = 1,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kSplit,
  kReceive
};

struct Communicator {
  std::string group;  ///< the same on all its ranks, and of no other
  int ranks = 1, rank = 0;
  std::atomic<std::uint64_t> calls{0};
  std::mutex mutex;
  std::map<int, std::uint64_t> sent, received;  ///< messages, by the other rank

  [[nodiscard]] std::string box(int member) const { return group + "." + std::to_string(member); }
  [[nodiscard]] std::string box(int from, int to) const { return box(from) + "." + std::to_string(to); }
};

Communicator& of(void* communicator) {
  return *static_cast<Communicator*>(communicator);
}

/// ncclUniqueId, which is given by value.
struct UniqueId {
  char bytes[128];
};

std::string group_of(const UniqueId& id) {
  constexpr std::size_t kBytesOfName = 16;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "g";
  for (std::size_t i = 0; i < kBytesOfName; ++i) {
    const auto byte = static_cast<unsigned char>(id.bytes[i]);
    name += kDigits[byte >> 4];
    name += kDigits[byte & 15];
  }
  return name;
}

int join(void** communicator, std::string group, int ranks, int rank) {
  auto* const made = new Communicator;
  made->group = std::move(group);
  made->ranks = ranks;
  made->rank = rank;
  *communicator = made;
  return kSuccess;
}

Bytes piece(const Bytes& all, std::size_t at, std::size_t bytes) {
  if (all.size() < at + bytes) return {};
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
  return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
}

/// A call: what this rank gives, and what becomes of all ranks' parts.
struct Call {
  Kind kind = kAllReduce;
  std::string name;                  ///< for people
  std::size_t sent = 0, result = 0;  ///< bytes
  const void* stream = nullptr;
  std::function<bool(int member)> takes;  ///< whether the result has a part of that member's
  /// Parts by member; those that are not taken are empty.
  std::function<std::optional<Bytes>(const std::vector<Bytes>&)> combine;
};

std::optional<Bytes> of_all(const Communicator& communicator, std::uint64_t number, const Call& call) {
  std::vector<Bytes> parts(static_cast<std::size_t>(communicator.ranks));
  for (int member = 0; member < communicator.ranks; ++member) {
    if (!call.takes(member)) continue;
    std::optional<Message> message = fetch(communicator.box(member), number);
    if (!message || message->kind != call.kind) {
      raise_in_program(call.name + " waits for rank " + std::to_string(member) + " of " +
                       std::to_string(communicator.ranks) +
                       (message ? ", which called something else at its place" : ", which has ended without it") +
                       ": on GPUs the program would hang here");
      return std::nullopt;
    }
    if (message->known == 0) return std::nullopt;
    parts[static_cast<std::size_t>(member)] = std::move(message->values);
  }
  return call.combine(parts);
}

/// What it would be if all had sent what this rank sends.
std::optional<Bytes> of_equals(const Communicator& communicator, const std::optional<Bytes>& own, const Call& call) {
  if (!own) return std::nullopt;
  std::vector<Bytes> parts(static_cast<std::size_t>(communicator.ranks));
  for (int member = 0; member < communicator.ranks; ++member)
    if (call.takes(member)) parts[static_cast<std::size_t>(member)] = *own;
  return call.combine(parts);
}

/// So many bytes of a collective's result, where the others do not run.
std::shared_ptr<Source> of_absent(const Communicator& communicator, const std::string& collective, std::size_t bytes,
                                  std::optional<Bytes> as_equal) {
  // What is longer is no number to decide by, but weights, say, that are copied to the host.
  constexpr std::size_t kNumbers = 256;
  return absent(
      (bytes > kNumbers ? "all of " : "") + collective + " among " + std::to_string(communicator.ranks) + " ranks",
      std::move(as_equal));
}

constexpr int kNobody = -1;
thread_local int group_depth = 0;
/// Calls between ncclGroupStart and ncclGroupEnd are one kernel.
std::atomic<std::int64_t> groups{0};
thread_local std::int64_t this_group = 0;

void keep_call(const Communicator& communicator, Kind kind, std::size_t bytes, int peer, const void* stream) {
  keep_work(Work::collective, stream,
            {kind, static_cast<std::int64_t>(bytes), number_of(&communicator), communicator.ranks, communicator.rank,
             peer, group_depth > 0 ? this_group : ++groups});
}

/// `from`: nullptr where this rank gives nothing; `to`: where it gets nothing.
int called(Communicator& communicator, const void* from, void* to, int type, Call call) {
  keep_call(communicator, call.kind, std::max(call.sent, call.result), kNobody, call.stream);
  if (communicator.ranks == 1) {
    if (from != nullptr && to != nullptr) copy(to, from, std::min(call.sent, call.result));
    return kSuccess;
  }
  // Objects travel as bytes in buffers that are as long as the longest.
  std::optional<Bytes> own;
  if (from != nullptr && call.sent <= Values::kLongest) own = values_of(from, call.sent, type == kUint8);
  const std::uint64_t number = communicator.calls++;
  if (others_run())
    post(communicator.box(communicator.rank),
         {.kind = call.kind, .known = own ? 1 : 0, .values = own ? *own : Bytes()});
  if (to == nullptr) return kSuccess;
  // What this rank alone decides, and what kernels computed, is no more than it was.
  bool others = false, unknown = call.result > Values::kLongest;
  for (int member = 0; member < communicator.ranks; ++member) {
    if (!call.takes(member)) continue;
    others = others || member != communicator.rank;
    unknown = unknown || (member == communicator.rank && !own);
  }
  if (!others || unknown) {
    if (unknown) {
      forget_values(to, call.result);
    } else if (from != nullptr && from != to) {
      copy(to, from, std::min(call.sent, call.result));
    }
    return kSuccess;
  }
  if (!others_run()) {
    // Of a broadcast: what this rank has where the root's would come.
    const std::optional<Bytes> mine = from != nullptr ? own : values_of(to, call.result);
    promise(to, call.result, of_absent(communicator, call.name, call.result, of_equals(communicator, mine, call)));
    return kSuccess;
  }
  promise(to, call.result, std::make_shared<Source>([&communicator, number, call = std::move(call)] {
            return of_all(communicator, number, call);
          }));
  return kSuccess;
}

/// A broadcast between ncclGroupStart and ncclGroupEnd; or what this rank sends to itself there (`to` nowhere), or gets
/// (`from` nowhere), where it runs alone.
struct Grouped {
  Communicator* communicator = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
  int type = 0, root = 0;  ///< `root`: who sends
};
thread_local std::vector<Grouped> grouped, exchanged;

/// Broadcasts of each rank in one group are an all-gather into buffers of their own: what others send is what this rank
/// does, where it is as long.
void told_as_gathers() {
  for (const Grouped& own : grouped) {
    if (own.root != own.communicator->rank || own.bytes > Values::kLongest) continue;
    const std::optional<Bytes> values = values_of(own.from, own.bytes, own.type == kUint8);
    if (!values) continue;
    for (const Grouped& other : grouped)
      if (other.communicator == own.communicator && other.root != own.root && other.bytes == own.bytes)
        promise(other.to, other.bytes, of_absent(*own.communicator, "an all-gather", other.bytes, values));
  }
  grouped.clear();
}

/// Sends and receives of all ranks in one group are an all-to-all: others send this rank what it sends itself, where
/// that is as long.
void told_as_exchange() {
  for (const Grouped& own : exchanged) {
    if (own.to != nullptr) continue;
    const std::optional<Bytes> values = values_of(own.from, own.bytes, own.type == kUint8);
    for (const Grouped& other : exchanged) {
      if (other.communicator != own.communicator || other.to == nullptr || other.bytes != own.bytes) continue;
      if (other.root == own.root)
        copy(other.to, own.from, own.bytes);
      else if (values)
        promise(other.to, other.bytes, of_absent(*own.communicator, "an all-to-all", other.bytes, values));
    }
  }
  exchanged.clear();
}

bool everybody(int /*member*/) {
  return true;
}

/// All parts, one behind the other.
std::optional<Bytes> joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

// --- Communicators ---

STANDIN int ncclGetVersion(int* version) {
  *version = 22005;
  return kSuccess;
}
STANDIN int ncclGetUniqueId(UniqueId* id) {
  std::memset(id, 0, sizeof(*id));
  std::random_device random;
  for (std::size_t at = 0; others_run() && at < sizeof(id->bytes); at += sizeof(unsigned)) {
    const unsigned word = random();
    std::memcpy(id->bytes + at, &word, sizeof(word));
  }
  return kSuccess;
}
STANDIN int ncclCommInitRank(void** communicator, int ranks, UniqueId id, int rank) {
  return join(communicator, group_of(id), ranks, rank);
}
STANDIN int ncclCommInitRankConfig(void** communicator, int ranks, UniqueId id, int rank, void*) {
  return join(communicator, group_of(id), ranks, rank);
}
STANDIN int ncclCommInitRankScalable(void** communicator, int ranks, int rank, int, UniqueId* ids, void*) {
  return join(communicator, group_of(ids[0]), ranks, rank);
}
/// Ranks of one colour become a communicator, in the order of their keys; a colour below zero is of none.
STANDIN int ncclCommSplit(void* communicator, int color, int key, void** made, void*) {
  Communicator& from = of(communicator);
  if (!others_run()) return join(made, from.group, from.ranks, key < from.ranks ? key : from.rank);
  const std::uint64_t number = from.calls++;
  const std::int32_t wish[2] = {color, key};
  Message message{.kind = kSplit, .known = 1, .values = Bytes(sizeof(wish))};
  std::memcpy(message.values.data(), wish, sizeof(wish));
  post(from.box(from.rank), message);
  *made = nullptr;
  if (color < 0) return kSuccess;
  int ranks = 0, rank = 0;
  for (int member = 0; member < from.ranks; ++member) {
    std::int32_t theirs[2] = {-1, 0};
    if (const std::optional<Message> sent = fetch(from.box(member), number);
        sent && sent->values.size() == sizeof(theirs))
      std::memcpy(theirs, sent->values.data(), sizeof(theirs));
    if (theirs[0] != color) continue;
    ++ranks;
    if (theirs[1] < key || (theirs[1] == key && member < from.rank)) ++rank;
  }
  return join(made, from.group + "s" + std::to_string(number) + "c" + std::to_string(color), ranks, rank);
}
STANDIN int ncclCommInitAll(void** communicators, int count, const int*) {
  for (int i = 0; i < count; ++i) join(communicators + i, "here", count, i);
  return kSuccess;
}
STANDIN int ncclCommCount(const void* communicator, int* ranks) {
  *ranks = static_cast<const Communicator*>(communicator)->ranks;
  return kSuccess;
}
STANDIN int ncclCommUserRank(const void* communicator, int* rank) {
  *rank = static_cast<const Communicator*>(communicator)->rank;
  return kSuccess;
}
STANDIN int ncclCommGetAsyncError(void*, int* error) {
  *error = 0;
  return kSuccess;
}
STANDIN const char* ncclGetErrorString(int) {
  return "no error";
}
STANDIN const char* ncclGetLastError(void*) {
  return "";
}

// --- Collectives ---

STANDIN int ncclGroupStart() {
  if (group_depth++ == 0) this_group = ++groups;
  return kSuccess;
}
STANDIN int ncclGroupEnd() {
  if (group_depth > 0 && --group_depth == 0) {
    told_as_gathers();
    told_as_exchange();
  }
  return kSuccess;
}

STANDIN int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, void* communicator,
                          void* stream) {
  const std::size_t bytes = count * bytes_of_type(type);
  return called(of(communicator), from, to, type,
                {.kind = kAllReduce,
                 .name = "an all-reduce",
                 .sent = bytes,
                 .result = bytes,
                 .stream = stream,
                 .takes = everybody,
                 .combine = [type, operation](const auto& parts) { return reduce(parts, type, operation); }});
}
STANDIN int ncclReduce(const void* from, void* to, std::size_t count, int type, int operation, int root,
                       void* communicator, void* stream) {
  const std::size_t bytes = count * bytes_of_type(type);
  return called(of(communicator), from, of(communicator).rank == root ? to : nullptr, type,
                {.kind = kReduce,
                 .name = "a reduction",
                 .sent = bytes,
                 .result = bytes,
                 .stream = stream,
                 .takes = everybody,
                 .combine = [type, operation](const auto& parts) { return reduce(parts, type, operation); }});
}
STANDIN int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, void* communicator,
                          void* stream) {
  const std::size_t bytes = count * bytes_of_type(type);
  if (group_depth > 0 && !others_run())
    grouped.push_back(
        {.communicator = &of(communicator), .from = from, .to = to, .bytes = bytes, .type = type, .root = root});
  return called(
      of(communicator), of(communicator).rank == root ? from : nullptr, to, type,
      {.kind = kBroadcast,
       .name = "a broadcast from rank " + std::to_string(root),
       .sent = bytes,
       .result = bytes,
       .stream = stream,
       .takes = [root](int member) { return member == root; },
       .combine = [root](const auto& parts) { return std::optional(parts[static_cast<std::size_t>(root)]); }});
}
STANDIN int ncclBcast(void* buffer, std::size_t count, int type, int root, void* communicator, void* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}
STANDIN int ncclAllGather(const void* from, void* to, std::size_t count, int type, void* communicator, void* stream) {
  const std::size_t bytes = count * bytes_of_type(type);
  return called(of(communicator), from, to, type,
                {.kind = kAllGather,
                 .name = "an all-gather",
                 .sent = bytes,
                 .result = bytes * static_cast<std::size_t>(of(communicator).ranks),
                 .stream = stream,
                 .takes = everybody,
                 .combine = joined});
}
STANDIN int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int operation,
                              void* communicator, void* stream) {
  const std::size_t bytes = count * bytes_of_type(type);
  const std::size_t at = bytes * static_cast<std::size_t>(of(communicator).rank);
  return called(of(communicator), from, to, type,
                {.kind = kReduceScatter,
                 .name = "a reduce-scatter",
                 .sent = bytes * static_cast<std::size_t>(of(communicator).ranks),
                 .result = bytes,
                 .stream = stream,
                 .takes = everybody,
                 .combine = [type, operation, at, bytes](const auto& parts) -> std::optional<Bytes> {
                   const std::optional<Bytes> all = reduce(parts, type, operation);
                   if (!all) return std::nullopt;
                   return piece(*all, at, bytes);
                 }});
}
STANDIN int ncclAlltoAll(const void* from, void* to, std::size_t count, int type, void* communicator, void* stream) {
  const std::size_t bytes = count * bytes_of_type(type), ranks = static_cast<std::size_t>(of(communicator).ranks);
  const std::size_t at = bytes * static_cast<std::size_t>(of(communicator).rank);
  return called(of(communicator), from, to, type,
                {.kind = kAllToAll,
                 .name = "an all-to-all",
                 .sent = bytes * ranks,
                 .result = bytes * ranks,
                 .stream = stream,
                 .takes = everybody,
                 .combine = [at, bytes](const auto& parts) {
                   std::vector<Bytes> mine;
                   for (const Bytes& part : parts) mine.push_back(piece(part, at, bytes));
                   return joined(mine);
                 }});
}
STANDIN int ncclGather(const void* from, void* to, std::size_t count, int type, int root, void* communicator,
                       void* stream) {
  const std::size_t bytes = count * bytes_of_type(type);
  return called(of(communicator), from, of(communicator).rank == root ? to : nullptr, type,
                {.kind = kGather,
                 .name = "a gather",
                 .sent = bytes,
                 .result = bytes * static_cast<std::size_t>(of(communicator).ranks),
                 .stream = stream,
                 .takes = everybody,
                 .combine = joined});
}
STANDIN int ncclScatter(const void* from, void* to, std::size_t count, int type, int root, void* communicator,
                        void* stream) {
  const std::size_t bytes = count * bytes_of_type(type);
  const std::size_t at = bytes * static_cast<std::size_t>(of(communicator).rank);
  return called(of(communicator), of(communicator).rank == root ? from : nullptr, to, type,
                {.kind = kScatter,
                 .name = "a scatter from rank " + std::to_string(root),
                 .sent = bytes * static_cast<std::size_t>(of(communicator).ranks),
                 .result = bytes,
                 .stream = stream,
                 .takes = [root](int member) { return member == root; },
                 .combine =
                     [root, at, bytes](const auto& parts) {
                       return std::optional(piece(parts[static_cast<std::size_t>(root)], at, bytes));
                     }});
}

// --- From one rank to another ---

STANDIN int ncclSend(const void* from, std::size_t count, int type, int peer, void* communicator, void* stream) {
  Communicator& sender = of(communicator);
  keep_call(sender, kSend, count * bytes_of_type(type), peer, stream);
  const std::size_t bytes = count * bytes_of_type(type);
  if (!others_run() || sender.ranks == 1) {
    if (group_depth > 0 && peer == sender.rank)
      exchanged.push_back({.communicator = &sender, .from = from, .bytes = bytes, .type = type, .root = peer});
    return kSuccess;
  }
  const std::optional<Bytes> own = values_of(from, bytes, type == kUint8);
  const std::lock_guard lock(sender.mutex);
  ++sender.sent[peer];
  post(sender.box(sender.rank, peer), {.kind = kSend, .known = own ? 1 : 0, .values = own ? *own : Bytes()});
  return kSuccess;
}
STANDIN int ncclRecv(void* to, std::size_t count, int type, int peer, void* communicator, void* stream) {
  Communicator& receiver = of(communicator);
  const std::size_t bytes = count * bytes_of_type(type);
  keep_call(receiver, kReceive, bytes, peer, stream);
  if (group_depth > 0 && (!others_run() || receiver.ranks == 1))
    exchanged.push_back({.communicator = &receiver, .to = to, .bytes = bytes, .type = type, .root = peer});
  if (receiver.ranks == 1) return kSuccess;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(receiver.mutex);
    number = receiver.received[peer]++;
  }
  if (bytes > Values::kLongest) {
    forget_values(to, bytes);
    return kSuccess;
  }
  if (!others_run()) {
    promise(to, bytes, absent("what rank " + std::to_string(peer) + " sends", std::nullopt));
    return kSuccess;
  }
  promise(to, bytes, std::make_shared<Source>([&receiver, peer, number]() -> std::optional<Bytes> {
            std::optional<Message> message = fetch(receiver.box(peer, receiver.rank), number);
            if (!message)
              raise_in_program("a receive waits for rank " + std::to_string(peer) +
                               ", which has ended without sending: on GPUs the program would hang here");
            if (!message || message->known == 0) return std::nullopt;
            return std::move(message->values);
          }));
  return kSuccess;
}
