// A record of CUPTI as an event of ours.
#pragma once

#include <cupti.h>

#include <optional>
#include <unordered_map>
#include <utility>

#include "profiler/cupti/functions.h"
#include "profiler/spool/spool.h"

namespace shard::profiler {

/// One per thread that takes buffers; remembers names by their addresses.
class Converter {
 public:
  Converter(const CuptiFunctions& cupti, Spool& spool) : cupti_(cupti), spool_(spool) {}

  /// Nothing for kinds that say nothing of the program, and for beginnings of ranges, which come with their ends.
  [[nodiscard]] std::optional<Event> event_of(const CUpti_Activity& record);

 private:
  struct Known {
    NameNumber number = 0;
    std::string text{};
  };
  struct OpenRange {
    std::int64_t begin_ns = 0;
    NameNumber name = 0;
    std::uint32_t thread = 0;
  };
  [[nodiscard]] NameNumber name(const char* text);
  [[nodiscard]] NameNumber call_name(CUpti_CallbackDomain domain, CUpti_CallbackId id);
  [[nodiscard]] std::optional<Event> range(const CUpti_ActivityMarker2& marker);
  [[nodiscard]] Event memory(const CUpti_ActivityMemory4& m);
  [[nodiscard]] std::optional<Event> sample(const CUpti_ActivityEnvironment& e) const;

  const CuptiFunctions& cupti_;
  Spool& spool_;
  std::unordered_map<const char*, Known> names_;  ///< an address may be used again for another text
  std::unordered_map<std::uint64_t, NameNumber> calls_;
  std::unordered_map<std::uint32_t, OpenRange> ranges_;
};

}  // namespace shard::profiler
