// Promised pieces by address, and values that are fetched once.
#include "profiler/standin/promises.h"

#include <iterator>

namespace shard::standin {

const std::optional<Bytes>& Source::values() {
  std::call_once(fetched_, [this] {
    values_ = fetch_();
    fetch_ = nullptr;
  });
  return values_;
}

Promises::Pieces::const_iterator Promises::first_in(std::uintptr_t address, std::size_t bytes) const {
  auto piece = pieces_.upper_bound(address);
  if (piece != pieces_.begin() && std::prev(piece)->first + std::prev(piece)->second.bytes > address) --piece;
  return piece != pieces_.end() && piece->first < address + bytes ? piece : pieces_.end();
}

void Promises::add(const Promise& promise) {
  drop(promise.address, promise.bytes);
  pieces_[promise.address] = promise;
}

void Promises::drop(std::uintptr_t address, std::size_t bytes) {
  while (take(address, bytes)) {
  }
}

std::optional<Promise> Promises::take(std::uintptr_t address, std::size_t bytes) {
  const auto piece = first_in(address, bytes);
  if (piece == pieces_.end()) return std::nullopt;
  Promise taken = piece->second;
  pieces_.erase(piece);
  return taken;
}

std::optional<Promise> Promises::within(std::uintptr_t address, std::size_t bytes) const {
  const auto piece = first_in(address, bytes);
  if (piece == pieces_.end() || piece->first > address || address + bytes > piece->first + piece->second.bytes)
    return std::nullopt;
  Promise part = piece->second;
  part.offset += address - piece->first;
  part.address = address;
  part.bytes = bytes;
  return part;
}

std::vector<Promise> Promises::inside(std::uintptr_t address, std::size_t bytes) const {
  std::vector<Promise> found;
  for (auto piece = pieces_.lower_bound(address); piece != pieces_.end() && piece->first < address + bytes; ++piece)
    if (piece->first + piece->second.bytes <= address + bytes) found.push_back(piece->second);
  return found;
}

std::size_t Promises::promised_begin(std::uintptr_t address) const {
  const auto piece = first_in(address, 1);
  return piece == pieces_.end() ? 0 : piece->first + piece->second.bytes - address;
}

bool Promises::touches(std::uintptr_t address, std::size_t bytes) const {
  return first_in(address, bytes) != pieces_.end();
}

}  // namespace shard::standin
