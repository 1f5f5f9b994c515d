// The card that the stand-in pretends to be, as the environment says.
#pragma once

#include <cstddef>
#include <string_view>

namespace shard::standin {

/// What decides how much memory PyTorch takes: its libraries choose workspaces and reductions by these.
struct Card {
  char name[128] = "stand-in";
  int compute_capability = 90;  ///< major * 10 + minor
  int multiprocessors = 132;
  int threads_per_multiprocessor = 2048;
  std::size_t bytes = std::size_t{80} << 30;
  int count = 1;             ///< cards that the program sees
  bool upwards = false;      ///< new addresses lie above earlier ones (device_memory.h)
  long long behind = 0;      ///< launches until an event is over; -1: the host has to wait (behind.h)
  int cuda_version = 12040;  ///< of the runtime that the program was built for: 1000 * major + 10 * minor
};

/// From SHARDSCOPE_STANDIN: "name=NVIDIA
/// H100,cc=90,sms=132,threads=2048,bytes=85899345920,count=8,cuda=12040,upwards=0,behind=0". Read once.
[[nodiscard]] const Card& card();

/// Those that CUDA_VISIBLE_DEVICES leaves.
[[nodiscard]] int visible_cards();
/// The number that a card has among all, of which the program sees it as `device`. NVML counts all.
[[nodiscard]] int card_of_device(int device);
/// What the program sees the card of that number as; the first one where it does not see it.
[[nodiscard]] int device_of_card(int card);
/// The begin of a name (GPU-...) that CUDA_VISIBLE_DEVICES has for a card of that number; empty where it has none.
[[nodiscard]] std::string_view visible_name_of(int card);

}  // namespace shard::standin
