// What does the reader of torch's schedulers make of any text?
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "executor/rates/torch_schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using shard::rates::TorchSchedule;
  const auto schedule = TorchSchedule::read({reinterpret_cast<const char*>(data), size}, "input");
  if (!schedule) return 0;
  for (const std::int64_t step : {0, 1, 1000, 1'000'000'000}) static_cast<void>(schedule->at(1e-3, step));
  const auto again = TorchSchedule::read(schedule->text(), "its own text");
  if (!again || again->text() != schedule->text()) std::abort();
  return 0;
}
