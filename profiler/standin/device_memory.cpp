// One reserved range of addresses, the driver's placement in it and a list of what is allocated.
#include "profiler/standin/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "profiler/standin/card.h"
#include "profiler/standin/counters.h"
#include "profiler/standin/expected.h"
#include "profiler/standin/promises.h"
#include "profiler/standin/values.h"
#include "traces/base/segment_placement.h"

namespace shard::standin {
namespace {

constexpr std::size_t kSpace = std::size_t{1} << 42;
constexpr int kMostDevices = kMostCards;

class DeviceMemory {
 public:
  void* allocate(std::size_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = SegmentPlacement::size_of(bytes);
    if (!has_room(size, device) || !begin()) return nullptr;
    const std::optional<std::uintptr_t> address = placement_->take(bytes);
    if (!address) return nullptr;
    live_[*address] = {.bytes = size, .device = device};
    count(size, device);
    return reinterpret_cast<void*>(*address);
  }

  bool release(void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto block = live_.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (block == live_.end()) return false;
    const auto [bytes, device] = block->second;
    forget(pointer, bytes);
    uncount(bytes, device);
    placement_->give_back(block->first, bytes);
    live_.erase(block);
    return true;
  }

  void* reserve(std::size_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    void* const address = reserved(bytes);
    placed_[reinterpret_cast<std::uintptr_t>(address)] = {.bytes = bytes, .device = device};
    return address;
  }
  void place(void* address, std::size_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    placed_[reinterpret_cast<std::uintptr_t>(address)] = {.bytes = bytes, .device = device};
  }
  void unplace(void* address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    forget(address, bytes);
    placed_.erase(reinterpret_cast<std::uintptr_t>(address));
  }
  void unreserve(void* address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    forget(address, bytes);
    placed_.erase(reinterpret_cast<std::uintptr_t>(address));
    given_back_.emplace(SegmentPlacement::range_of(bytes), reinterpret_cast<std::uintptr_t>(address));
  }
  bool take(std::size_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    if (!has_room(bytes, device)) return false;
    count(bytes, device);
    return true;
  }
  void give_back(std::size_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    uncount(bytes, device);
  }
  void forget(void* address, std::size_t bytes) {
    values_.drop(reinterpret_cast<std::uintptr_t>(address), bytes);
    promises_.drop(reinterpret_cast<std::uintptr_t>(address), bytes);
    madvise(address, bytes, MADV_DONTNEED);
  }

  [[nodiscard]] bool is_device(const void* pointer) const {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return base_ != 0 && address >= base_ && address < base_ + kSpace;
  }
  [[nodiscard]] bool is_given(const void* pointer) {
    if (!is_device(pointer)) return false;
    const std::lock_guard lock(mutex_);
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    const auto next = live_.upper_bound(address);
    return has_reserved_ || (next != live_.begin() && address < std::prev(next)->first + std::prev(next)->second.bytes);
  }
  [[nodiscard]] int device_of(const void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    for (const Blocks* const blocks : {&live_, &placed_})
      if (const auto block = around(*blocks, address); block != blocks->end()) return block->second.device;
    return 0;
  }
  [[nodiscard]] std::pair<void*, std::size_t> block_around(const void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto block = around(live_, reinterpret_cast<std::uintptr_t>(pointer));
    if (block == live_.end()) return {nullptr, 0};
    return {reinterpret_cast<void*>(block->first), block->second.bytes};
  }
  /// The values of it and what is promised; nobody else may use them meanwhile.
  template <class Use>
  auto with_values(const Use& use) {
    const std::lock_guard lock(mutex_);
    return use(values_, promises_);
  }
  [[nodiscard]] std::size_t used_of(int device) {
    const std::lock_guard lock(mutex_);
    return used(device);
  }

 private:
  void* reserved(std::size_t bytes) {
    const std::size_t range = SegmentPlacement::range_of(bytes);
    has_reserved_ = true;
    if (const auto again = given_back_.find(range); again != given_back_.end()) {
      const std::uintptr_t address = again->second;
      given_back_.erase(again);
      return reinterpret_cast<void*>(address);
    }
    if (!begin()) return nullptr;
    const std::optional<std::uintptr_t> address = placement_->reserve(bytes);
    return address ? reinterpret_cast<void*>(*address) : nullptr;
  }
  bool begin() {
    if (base_ != 0) return true;
    void* const space =
        mmap(nullptr, kSpace, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return false;
    madvise(space, kSpace, MADV_DONTDUMP);
    madvise(space, kSpace, MADV_NOHUGEPAGE);  // a byte written costs a page, not 2 MiB
    base_ = reinterpret_cast<std::uintptr_t>(space);
    placement_.emplace(base_, base_ + kSpace, card().upwards);
    return true;
  }
  std::size_t& used(int device) {
    return used_[static_cast<std::size_t>(device >= 0 && device < kMostDevices ? device : 0)];
  }
  bool has_room(std::size_t bytes, int device) { return bytes <= card().bytes && used(device) <= card().bytes - bytes; }
  void count(std::size_t bytes, int device) {
    used(device) += bytes;
    count_device(used(device), card_of_device(device));
  }
  void uncount(std::size_t bytes, int device) {
    used(device) -= std::min(used(device), bytes);
    count_device(used(device), card_of_device(device));
  }

  std::mutex mutex_;
  std::uintptr_t base_ = 0;  // of the space
  std::optional<SegmentPlacement> placement_;
  struct Block {
    std::size_t bytes;
    int device;
  };
  using Blocks = std::map<std::uintptr_t, Block>;
  [[nodiscard]] static Blocks::const_iterator around(const Blocks& blocks, std::uintptr_t address) {
    const auto next = blocks.upper_bound(address);
    if (next == blocks.begin()) return blocks.end();
    const auto block = std::prev(next);
    return address < block->first + block->second.bytes ? block : blocks.end();
  }
  Blocks live_;
  Blocks placed_;                                          ///< another process's, on other cards than the first
  std::multimap<std::size_t, std::uintptr_t> given_back_;  // ranges of reserve()
  std::array<std::size_t, kMostDevices> used_{};
  Values values_;
  Promises promises_;
  bool has_reserved_ = false;  // what is mapped of reserved ranges is not kept
};

/// Never destroyed: threads of the program may outlive main().
DeviceMemory& memory() {
  static auto* const memory = new DeviceMemory;
  return *memory;
}

}  // namespace

void* allocate(std::size_t bytes, int device) {
  return memory().allocate(bytes, device);
}
bool release(void* address) {
  return memory().release(address);
}
bool is_device(const void* address) {
  return memory().is_device(address);
}
bool is_given(const void* address) {
  return memory().is_given(address);
}
int device_of(const void* address) {
  return memory().device_of(address);
}
std::pair<void*, std::size_t> block_around(const void* address) {
  return memory().block_around(address);
}
std::size_t used_bytes(int device) {
  return memory().used_of(device);
}
void* reserve(std::size_t bytes, int device) {
  return memory().reserve(bytes, device);
}
void place(void* address, std::size_t bytes, int device) {
  memory().place(address, bytes, device);
}
void unplace(void* address, std::size_t bytes) {
  memory().unplace(address, bytes);
}
void unreserve(void* address, std::size_t bytes) {
  memory().unreserve(address, bytes);
}
bool take(std::size_t bytes, int device) {
  return memory().take(bytes, device);
}
void give_back(std::size_t bytes, int device) {
  memory().give_back(bytes, device);
}
void forget(void* address, std::size_t bytes) {
  memory().with_values([&](Values&, Promises&) { memory().forget(address, bytes); });
}

namespace {

std::uintptr_t number_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// What of a piece is promised becomes known, or zeros.
void keep_promises(const void* from, std::size_t bytes) {
  const std::uintptr_t address = number_of(from);
  while (true) {
    const std::optional<Promise> promise =
        memory().with_values([&](Values&, Promises& promises) { return promises.take(address, bytes); });
    if (!promise) return;
    const std::optional<Bytes>& values = promise->source->values();
    if (!values || values->size() < promise->offset + promise->bytes) continue;
    memory().with_values([&](Values& known, Promises&) {
      if (known.note(promise->address, promise->bytes))
        std::memcpy(reinterpret_cast<void*>(promise->address), values->data() + promise->offset, promise->bytes);
    });
  }
}

}  // namespace

void promise(void* to, std::size_t bytes, std::shared_ptr<Source> source) {
  if (bytes == 0) return;
  memory().with_values([&](Values& values, Promises& promises) {
    values.drop(number_of(to), bytes);
    promises.add({.address = number_of(to), .bytes = bytes, .source = std::move(source), .offset = 0});
  });
}

bool is_promised(const void* address, std::size_t bytes) {
  return memory().with_values([&](Values&, Promises& promises) { return promises.touches(number_of(address), bytes); });
}

std::optional<Bytes> values_of(const void* from, std::size_t bytes, bool known_begin) {
  if (bytes == 0 || bytes > Values::kLongest) return std::nullopt;
  const auto* const first = static_cast<const std::byte*>(from);
  if (!is_device(from)) return Bytes(first, first + bytes);
  keep_promises(from, bytes);
  return memory().with_values([&](Values& values, Promises&) -> std::optional<Bytes> {
    const std::size_t known = values.known_begin(number_of(from), bytes);
    if (known == 0 || (known < bytes && !known_begin)) return std::nullopt;
    return Bytes(first, first + bytes);
  });
}

std::optional<Bytes> values_if_equal(const void* from, std::size_t bytes) {
  return memory().with_values([&](Values& values, Promises& promises) -> std::optional<Bytes> {
    // What each rank sends may lie side by side.
    Bytes found;
    while (found.size() < bytes) {
      const std::uintptr_t at = number_of(from) + found.size();
      const std::size_t left = bytes - found.size(), promised = std::min(promises.promised_begin(at), left);
      if (promised > 0) {
        const std::optional<Promise> part = promises.within(at, promised);
        const std::optional<Bytes>& all = part->source->if_equal();
        if (!all || all->size() < part->offset + promised) return std::nullopt;
        const auto begin = all->begin() + static_cast<std::ptrdiff_t>(part->offset);
        found.insert(found.end(), begin, begin + static_cast<std::ptrdiff_t>(promised));
      } else {
        const std::size_t known = values.known_begin(at, left);
        if (known == 0) return std::nullopt;
        const auto* const first = reinterpret_cast<const std::byte*>(at);
        found.insert(found.end(), first, first + known);
      }
    }
    return found;
  });
}

void forget_values(void* to, std::size_t bytes) {
  memory().with_values([&](Values& values, Promises& promises) {
    values.drop(number_of(to), bytes);
    promises.drop(number_of(to), bytes);
  });
}

bool has_values(const void* from, std::size_t bytes) {
  return memory().with_values([&](Values& values, Promises& promises) {
    return values.knows(number_of(from), bytes) || promises.within(number_of(from), bytes).has_value();
  });
}

bool will_have_values(const void* from, std::size_t bytes) {
  return memory().with_values([&](Values& values, Promises& promises) {
    const std::uintptr_t end = number_of(from) + bytes;
    for (std::uintptr_t at = number_of(from); at < end;) {
      const std::size_t more = std::max(values.known_begin(at, end - at), promises.promised_begin(at));
      if (more == 0) return false;
      at += more;
    }
    return true;
  });
}

namespace {

void copy_up_to(std::size_t longest, void* to, const void* from, std::size_t bytes) {
  if (to == from || bytes == 0) return;
  const bool to_device = is_device(to), from_device = is_device(from);
  const std::uintptr_t target = number_of(to), source = number_of(from);
  if (from_device && to_device) {
    const bool handed_on = memory().with_values([&](Values& values, Promises& promises) {
      if (!promises.touches(source, bytes)) return false;
      std::vector<Promise> parts = promises.inside(source, bytes);
      if (const std::optional<Promise> part = promises.within(source, bytes)) parts = {*part};
      values.drop(target, bytes);
      promises.drop(target, bytes);
      for (Promise& part : parts) {
        part.address = part.address - source + target;
        promises.add(part);
      }
      return true;
    });
    if (handed_on) return;
  } else if (from_device) {
    keep_promises(from, bytes);
  }
  const std::size_t known = memory().with_values([&](Values& values, Promises& promises) -> std::size_t {
    std::size_t begin = to_device && bytes > longest ? 0 : from_device ? values.known_begin(source, bytes) : bytes;
    if (to_device) {
      promises.drop(target, bytes);
      values.drop(target, bytes);
      if (begin > 0 && !values.note(target, begin)) begin = 0;
    }
    std::memmove(to, from, begin);
    return begin;
  });
  if (known == bytes || to_device || !from_device || take_expected(to, bytes)) return;
  count_read();
  if (bytes <= longest) std::memset(static_cast<std::byte*>(to) + known, 0, bytes - known);
}

}  // namespace

void copy(void* to, const void* from, std::size_t bytes) {
  copy_up_to(Values::kLongest, to, from, bytes);
}
void copy_computed(void* to, const void* from, std::size_t bytes) {
  copy_up_to(Values::kLongestComputed, to, from, bytes);
}

void fill(void* to, int value, std::size_t bytes) {
  if (!is_device(to)) {
    std::memset(to, value, bytes);
    return;
  }
  memory().with_values([&](Values& values, Promises& promises) {
    const std::uintptr_t target = number_of(to);
    promises.drop(target, bytes);
    if (value != 0 && bytes <= Values::kLongest && values.note(target, bytes)) {
      std::memset(to, value, bytes);
    } else {
      values.drop(target, bytes);  // what has no value reads as zeros
    }
  });
}

void written_by_kernel(const void* address, std::size_t bytes) {
  memory().with_values([&](Values& values, Promises& promises) {
    values.drop_at(number_of(address));
    values.drop(number_of(address), bytes);
    promises.drop(number_of(address), bytes);
  });
}

}  // namespace shard::standin
