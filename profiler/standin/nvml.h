// What NVML's functions here have in common: its errors, and handles of cards.
#pragma once

#include <string_view>

#include "profiler/standin/handles.h"

namespace shard::standin::nvml {

/// nvmlReturn_t.
inline constexpr int kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7,
                     kVersionMismatch = 25;

/// nvmlDevice_t of a card; nullptr where there is no such card.
[[nodiscard]] void* handle_of(int card);
/// Of a handle that is one.
[[nodiscard]] int card_of(const void* device);
/// Whether a function may answer: success, or why not.
[[nodiscard]] int state();
[[nodiscard]] int checked(const void* device);

/// What a function of a card does whose answer is one value.
template <class T>
int give(const void* device, T* to, T value) {
  if (const int fault = checked(device); fault != kSuccess) return fault;
  if (to == nullptr) return kInvalidArgument;
  *to = value;
  return kSuccess;
}
int give_text(std::string_view text, char* to, unsigned length);

/// By the card's compute capability, of the data centre's cards that have it (NVIDIA's data sheets).
struct Facts {
  unsigned watts, links, version_of_links;
};
[[nodiscard]] Facts facts();

}  // namespace shard::standin::nvml
