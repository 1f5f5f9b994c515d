// Pieces that do not overlap, by address.
#include "profiler/standin/values.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace shard::standin {
namespace {

/// Host memory that values take.
constexpr std::size_t kMost = std::size_t{256} << 20;
/// Numbers that a program decides by, and what is longer than a list of such.
constexpr std::size_t kNumber = 64, kLongPiece = 4096;
/// Where blocks of an allocator begin.
constexpr std::uintptr_t kBlock = 512;
constexpr std::uintptr_t kPage = 4096;

/// Makes zeros of a piece, and gives its pages back where it has whole ones.
void clear(std::uintptr_t address, std::size_t bytes) {
  const std::uintptr_t end = address + bytes, first = (address + kPage - 1) / kPage * kPage, last = end / kPage * kPage;
  if (first < last) {
    std::memset(reinterpret_cast<void*>(address), 0, first - address);
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    std::memset(reinterpret_cast<void*>(last), 0, end - last);
  } else {
    std::memset(reinterpret_cast<void*>(address), 0, bytes);
  }
}

}  // namespace

Values::Pieces::const_iterator Values::around(std::uintptr_t address) const {
  const auto next = pieces_.upper_bound(address);
  if (next == pieces_.begin()) return pieces_.end();
  const auto piece = std::prev(next);
  return address < piece->first + piece->second ? piece : pieces_.end();
}

bool Values::note(std::uintptr_t address, std::size_t bytes) {
  drop(address, bytes);
  if (bytes_ + bytes > kMost) return false;
  pieces_[address] = bytes;
  bytes_ += bytes;
  return true;
}

void Values::drop(std::uintptr_t address, std::size_t bytes) {
  const std::uintptr_t end = address + bytes;
  auto piece = pieces_.upper_bound(address);
  if (piece != pieces_.begin()) --piece;
  while (piece != pieces_.end() && piece->first < end) {
    const auto [begin, length] = *piece;
    const std::uintptr_t piece_end = begin + length;
    if (piece_end <= address) {
      ++piece;
      continue;
    }
    piece = pieces_.erase(piece);
    bytes_ -= length;
    const std::uintptr_t from = std::max(begin, address), to = std::min(piece_end, end);
    clear(from, to - from);
    if (begin < from) pieces_[begin] = from - begin, bytes_ += from - begin;
    if (to < piece_end) pieces_[to] = piece_end - to, bytes_ += piece_end - to;
  }
}

void Values::drop_at(std::uintptr_t address) {
  if (const auto piece = around(address); piece != pieces_.end()) {
    const auto [begin, length] = *piece;
    drop(begin, length);
  }
}

bool Values::knows(std::uintptr_t address, std::size_t bytes) const {
  return bytes > 0 && known_begin(address, bytes) == bytes;
}

std::size_t Values::known_begin(std::uintptr_t address, std::size_t bytes) const {
  auto piece = around(address);
  if (piece == pieces_.end()) return 0;
  if (bytes <= kNumber && piece->second > kLongPiece && address % kBlock == 0) return 0;
  // Pieces that were copied one by one may lie side by side.
  std::uintptr_t known = address;
  for (; piece != pieces_.end() && piece->first <= known && known < address + bytes; ++piece)
    known = piece->first + piece->second;
  return std::min<std::size_t>(known - address, bytes);
}

}  // namespace shard::standin
