// Replays of the recording through the allocator's model, beside what was recorded.
#include "viewer/commands/report_allocator.h"

#include <algorithm>
#include <string>

#include "sim/commands/allocator_what_ifs.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

/// A replay of so many takes about a second.
constexpr std::size_t kMostEvents = 500'000;

cli::Cell difference_cell(std::int64_t bytes) {
  return {bytes, bytes == 0 ? "0 B" : (bytes < 0 ? "-" : "+") + size_text(bytes < 0 ? -bytes : bytes)};
}

}  // namespace

std::optional<ReportTable> allocator_table(const Session& session, Rank rank) {
  const Document& document = session.documents[0];
  const Snapshot* const snapshot = document.snapshot();
  const bool whole = snapshot != nullptr && document.trace().complete();
  if (!whole || snapshot->events.empty() || snapshot->events.size() > kMostEvents) return std::nullopt;
  const Result<commands::AllocatorWhatIfs> what_ifs = commands::allocator_what_ifs(*snapshot, rank.value);
  ReportTable result{"Other settings of the allocator", {}, ""};
  // A recording that the model cannot replay is still one to report.
  if (!what_ifs) {
    result.table.columns = {{"not_known", "not known", cli::Align::left}};
    result.table.rows.push_back({what_ifs.error().what});
    return result;
  }
  result.table.columns = {{"settings", "PYTORCH_CUDA_ALLOC_CONF", cli::Align::left},
                          {"peak_allocated_bytes", "allocated at the peak"},
                          {"peak_reserved_bytes", "reserved at the peak"},
                          {"difference_bytes", "against the recording"}};
  const std::int64_t recorded = what_ifs->recorded_peak_reserved_bytes;
  result.table.rows.push_back({std::string("as recorded"), {}, bytes_cell(recorded), {}});
  for (const commands::AllocatorWhatIf& each : what_ifs->replays) {
    const std::string settings = each.settings.empty() ? "none" : each.settings;
    if (!each.fits) {
      result.table.rows.push_back({settings, {}, std::string("does not fit"), {}});
      continue;
    }
    result.table.rows.push_back({settings, bytes_cell(each.peak_allocated_bytes), bytes_cell(each.peak_reserved_bytes),
                                 difference_cell(each.peak_reserved_bytes - recorded)});
  }
  result.note = "Rank " + std::to_string(rank.value) +
                ". The recorded program again, through a model of PyTorch's allocator, from the segments that were "
                "there when the recording began. Garbage is collected as if the device had no more than was reserved "
                "in the recording. Any other setting: inspect --replay-allocator pytorch --allocator-conf SETTINGS.";
  return result;
}

}  // namespace shard::view
