// Calls are matched as NCCL does: those of all by their number, messages by their number on their way.
#include "executor/cuda/emulated/nccl_clique.h"

#include <cstring>

#include "executor/numeric/half.h"

namespace shard::cuda::emulated {
namespace {

std::string described(int rank, const Transfer& transfer) {
  std::string text = "rank " + std::to_string(rank) + " calls " + to_string(transfer.kind) + " of " +
                     std::to_string(transfer.count) + " " + shard::to_string(transfer.dtype);
  if (transfer.kind == TransferKind::broadcast || transfer.kind == TransferKind::reduce)
    text += ", root " + std::to_string(transfer.peer);
  return text;
}

bool alike(const Transfer& a, const Transfer& b) {
  return a.kind == b.kind && a.count == b.count && a.dtype == b.dtype && a.peer == b.peer;
}

template <class T>
T element(const Content& content, std::int64_t i) {
  T value;
  std::memcpy(&value, content.data() + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// From the last rank to the first, rounded at each: not the tree of Communicator.
template <class T, class Add>
Content chain(const std::vector<Content>& parts, const Add& add) {
  Content sum = parts.back();
  const auto elements = static_cast<std::int64_t>(sum.size() / sizeof(T));
  for (std::size_t part = parts.size() - 1; part-- > 0;)
    for (std::int64_t i = 0; i < elements; ++i) {
      const T next = add(element<T>(sum, i), element<T>(parts[part], i));
      std::memcpy(sum.data() + i * static_cast<std::int64_t>(sizeof(T)), &next, sizeof(T));
    }
  return sum;
}

template <class T>
T plus(T a, T b) {
  return static_cast<T>(a + b);
}

}  // namespace

std::int64_t Transfer::in_bytes(int ranks) const {
  const std::int64_t parts = kind == TransferKind::reduce_scatter ? ranks : 1;
  return in == nullptr ? 0 : parts * count * bytes_per_element(dtype);
}

std::int64_t Transfer::out_bytes(int ranks) const {
  const std::int64_t parts = kind == TransferKind::all_gather ? ranks : 1;
  return out == nullptr ? 0 : parts * count * bytes_per_element(dtype);
}

Result<void> Clique::join(int rank) {
  const std::lock_guard lock(mutex_);
  if (rank < 0 || rank >= ranks_ || joined_[static_cast<std::size_t>(rank)])
    return Error{Errc::internal, "rank " + std::to_string(rank) + " joins a communicator that it cannot be in", "", ""};
  joined_[static_cast<std::size_t>(rank)] = true;
  ++present_;
  return {};
}

void Clique::count(int& number) {
  const std::lock_guard lock(mutex_);
  ++number;
}

bool Clique::is_all(const int& number) const {
  const std::lock_guard lock(mutex_);
  return number == ranks_;
}

std::optional<Error> Clique::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Clique::differ(const std::string& one, const std::string& other) {
  if (!error_) error_ = Error{Errc::internal, "calls of NCCL differ: " + one + ", and " + other, "", ""};
}

Clique::Place Clique::arrive(int rank, const Transfer& transfer, Content in) {
  const std::lock_guard lock(mutex_);
  const bool sends = transfer.kind == TransferKind::send;
  if (sends || transfer.kind == TransferKind::receive) {
    const std::pair<int, int> way = sends ? std::pair{rank, transfer.peer} : std::pair{transfer.peer, rank};
    auto& [sent, received] = next_message_[way];
    const Place place{way, sends ? sent++ : received++};
    Message& message = messages_[way][place.number];
    (sends ? message.sent : message.received) = transfer;
    if (sends) message.content = std::move(in);
    const auto& [s, r] = std::pair{message.sent, message.received};
    if (s && r && (s->count != r->count || s->dtype != r->dtype))
      differ(described(way.first, *s), described(way.second, *r));
    return place;
  }
  const Place place{{-1, -1}, next_round_[static_cast<std::size_t>(rank)]++};
  Round& round = rounds_[place.number];
  round.calls.resize(joined_.size());
  round.in.resize(joined_.size());
  for (std::size_t other = 0; other < round.calls.size(); ++other)
    if (round.calls[other] && !alike(*round.calls[other], transfer))
      differ(described(static_cast<int>(other), *round.calls[other]), described(rank, transfer));
  round.calls[static_cast<std::size_t>(rank)] = transfer;
  round.in[static_cast<std::size_t>(rank)] = std::move(in);
  ++round.arrived;
  return place;
}

bool Clique::all_there(const Place& place) const {
  const std::lock_guard lock(mutex_);
  if (error_) return false;
  if (place.way.first < 0) return rounds_.at(place.number).arrived == ranks_;
  const Message& message = messages_.at(place.way).at(place.number);
  return message.sent && message.received;
}

Content Clique::take(int rank, const Transfer& transfer, const Place& place) {
  const std::lock_guard lock(mutex_);
  if (place.way.first < 0) {
    Round& round = rounds_.at(place.number);
    Content content = result(rank, transfer, round);
    if (++round.taken == ranks_) rounds_.erase(place.number);
    return content;
  }
  std::map<std::int64_t, Message>& messages = messages_.at(place.way);
  Message& message = messages.at(place.number);
  Content content;
  if (transfer.kind == TransferKind::receive) content = std::move(message.content);
  if (++message.taken == 2) messages.erase(place.number);
  return content;
}

Content Clique::sum(const Round& round, Dtype dtype) const {
  switch (dtype) {
    case Dtype::f32: return chain<float>(round.in, plus<float>);
    case Dtype::i32: return chain<std::uint32_t>(round.in, plus<std::uint32_t>);
    case Dtype::i64: return chain<std::uint64_t>(round.in, plus<std::uint64_t>);
    case Dtype::f16: return chain<F16>(round.in, [](F16 a, F16 b) { return from_f32<F16>(to_f32(a) + to_f32(b)); });
    case Dtype::bf16:
      return chain<Bf16>(round.in, [](Bf16 a, Bf16 b) { return from_f32<Bf16>(to_f32(a) + to_f32(b)); });
  }
  return {};
}

Content Clique::result(int rank, const Transfer& transfer, const Round& round) const {
  const bool root = rank == transfer.peer;
  switch (transfer.kind) {
    case TransferKind::all_gather: {
      Content all;
      for (const Content& part : round.in) all.insert(all.end(), part.begin(), part.end());
      return all;
    }
    case TransferKind::reduce_scatter: {
      const Content all = sum(round, transfer.dtype);
      const std::int64_t part = transfer.out_bytes(ranks_);
      return {all.begin() + rank * part, all.begin() + (rank + 1) * part};
    }
    case TransferKind::all_reduce: return sum(round, transfer.dtype);
    case TransferKind::broadcast: return round.in[static_cast<std::size_t>(transfer.peer)];
    case TransferKind::reduce: return root ? sum(round, transfer.dtype) : Content{};
    case TransferKind::send:
    case TransferKind::receive: break;
  }
  return {};
}

NcclId NcclWorld::make_id() {
  const std::lock_guard lock(mutex_);
  NcclId id;
  const std::string text = "emulated " + std::to_string(++ids_);
  std::memcpy(id.bytes.data(), text.data(), text.size());
  return id;
}

Result<std::shared_ptr<Clique>> NcclWorld::clique(const NcclId& id, int ranks) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Clique>& clique = cliques_[std::string(id.bytes.data(), id.bytes.size())];
  if (clique == nullptr) clique = std::make_shared<Clique>(ranks);
  if (clique->ranks() != ranks)
    return Error{
        Errc::internal,
        "a communicator of " + std::to_string(clique->ranks()) + " ranks is joined as one of " + std::to_string(ranks),
        "", ""};
  return clique;
}

}  // namespace shard::cuda::emulated
