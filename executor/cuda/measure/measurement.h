// One figure of a device, with how it was found.
#pragma once

#include <string>
#include <vector>

namespace shard::cuda {

struct Measurement {
  std::string name{};
  double value = 0;
  std::string unit{};
  std::string method{};
};
using Measurements = std::vector<Measurement>;

}  // namespace shard::cuda
