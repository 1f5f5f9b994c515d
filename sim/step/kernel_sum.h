// The time of kernels that run one after another, by kind, and how many the host launches.
#pragma once

#include <array>
#include <cstdint>

#include "traces/base/units.h"

namespace shard::step {

enum class KernelKind : std::uint8_t { product, attention, moved, cast, loss };
inline constexpr std::size_t kKernelKinds = 5;
[[nodiscard]] constexpr const char* to_string(KernelKind kind) {
  switch (kind) {
    case KernelKind::product: return "products";
    case KernelKind::attention: return "attention";
    case KernelKind::moved: return "elementwise and norms";
    case KernelKind::cast: return "casts to 8 bits";
    case KernelKind::loss: return "loss";
  }
  return "?";
}

struct KernelSum {
  std::array<double, kKernelKinds> seconds{};
  double kernels = 0;

  void add(KernelKind kind, Seconds time, double count = 1) {
    seconds[static_cast<std::size_t>(kind)] += time.count();
    kernels += count;
  }
  void add(const KernelSum& other, double times = 1) {
    for (std::size_t i = 0; i < kKernelKinds; ++i) seconds[i] += other.seconds[i] * times;
    kernels += other.kernels * times;
  }
  [[nodiscard]] double of(KernelKind kind) const { return seconds[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] double total() const {
    double sum = 0;
    for (const double s : seconds) sum += s;
    return sum;
  }
};

}  // namespace shard::step
