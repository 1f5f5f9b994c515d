// A library that answers CUPTI's functions, and what a test tells it to deliver.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace shard::fake_cupti {

/// As on a machine where nothing has happened yet. The subscriber and the callbacks of a collector stay.
void reset();

/// What each call answers from now on.
void answer(const char* call, CUptiResult result);
/// The device's clock; by default the host's steady one.
void set_clock(std::function<std::uint64_t()> clock);

/// Records of any kind, one after the other, copied.
class Records {
 public:
  template <class Record>
  Records& add(const Record& record) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&record);
    records_.emplace_back(bytes, bytes + sizeof(record));
    return *this;
  }
  [[nodiscard]] std::vector<std::vector<std::uint8_t>>& list() { return records_; }

 private:
  std::vector<std::vector<std::uint8_t>> records_;
};

/// Asks the collector for buffers, fills them and gives them back. `keep`: they are given back by give_back() only.
void deliver(Records records, bool keep = false);
void give_back();

/// Records of kinds that are enabled now.
[[nodiscard]] bool is_enabled(CUpti_ActivityKind kind);
/// Graph node `node` was made on this thread, or is a copy of `original`. Numbers are the nodes' ids.
void make_node(std::uint64_t node);
void clone_node(std::uint64_t node, std::uint64_t original);
/// As NVTX has CUPTI hear it, where somebody listens.
void push_range(const char* name);
void push_registered_range(const char* name);  ///< in a domain of its own
void pop_range();
void pop_registered_range();
void start_range(std::uint64_t id, const char* name);
void end_range(std::uint64_t id);
/// What was pushed on this thread and not popped, the last.
[[nodiscard]] std::uint64_t pushed();

}  // namespace shard::fake_cupti
