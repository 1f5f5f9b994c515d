// One loop for every type that the host computes with.
#include "profiler/standin/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace shard::standin {
namespace {

constexpr int kSum = 0, kProduct = 1, kMost = 2, kLeast = 3, kMean = 4;

template <class T>
T combined(T a, T b, int operation) {
  switch (operation) {
    case kProduct: return static_cast<T>(a * b);
    case kMost: return std::max(a, b);
    case kLeast: return std::min(a, b);
    default: return static_cast<T>(a + b);
  }
}

template <class T>
Bytes reduced_as(const std::vector<Bytes>& parts, int operation) {
  Bytes result = parts.front();
  for (std::size_t at = 0; at + sizeof(T) <= result.size(); at += sizeof(T)) {
    T value{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      T next;
      std::memcpy(&next, parts[i].data() + at, sizeof(T));
      value = i == 0 ? next : combined<T>(value, next, operation);
    }
    if (operation == kMean) value = static_cast<T>(value / static_cast<T>(parts.size()));
    std::memcpy(result.data() + at, &value, sizeof(T));
  }
  return result;
}

}  // namespace

std::size_t bytes_of_type(int type) {
  // int8, uint8, int32, uint32, int64, uint64, fp16, fp32, fp64, bf16, and two fp8s.
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kBytes[type] : 4;
}

std::optional<Bytes> reduce(const std::vector<Bytes>& parts, int type, int operation) {
  if (parts.empty() || operation < kSum || operation > kMean) return std::nullopt;
  for (const Bytes& part : parts)
    if (part.size() != parts.front().size()) return std::nullopt;
  switch (type) {
    case 0: return reduced_as<std::int8_t>(parts, operation);
    case 1: return reduced_as<std::uint8_t>(parts, operation);
    case 2: return reduced_as<std::int32_t>(parts, operation);
    case 3: return reduced_as<std::uint32_t>(parts, operation);
    case 4: return reduced_as<std::int64_t>(parts, operation);
    case 5: return reduced_as<std::uint64_t>(parts, operation);
    case 7: return reduced_as<float>(parts, operation);
    case 8: return reduced_as<double>(parts, operation);
    default: return std::nullopt;
  }
}

}  // namespace shard::standin
