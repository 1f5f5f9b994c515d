// A product is one kernel, and maybe one behind it that sums its parts or adds its bias.
#include "profiler/steptime/places.h"

#include "profiler/steptime/kernel_names.h"

namespace shard::steptime {
namespace {

/// cuBLAS's second kernel of a product.
bool ends_product(std::string_view name) {
  return (name.find("splitK") != std::string_view::npos && name.find("educe") != std::string_view::npos) ||
         name.starts_with("epilogue::impl::globalKernel");
}

/// Whether PyTorch wrote it, so that it is no library's product.
bool is_of_pytorch(std::string_view name) {
  return name.starts_with("at::") || name.starts_with("triton_");
}

}  // namespace

Places::Places(const Recorded& recorded, const std::set<std::int32_t>& known) {
  for (const std::vector<RecordedKernel>& stream : recorded.streams()) {
    std::int32_t before = -1;
    std::vector<RecordedKernel> inside;
    for (const RecordedKernel& each : stream) {
      if (!known.contains(each.kind)) {
        if (!inside.empty() && ends_product(recorded.name_of_kind(each.kind)))
          inside.back().seconds += each.seconds;
        else
          inside.push_back(each);
        continue;
      }
      if (before >= 0 && !inside.empty()) {
        Content& content = gaps_[{.before = before, .after = each.kind, .count = inside.size()}];
        content.took.resize(inside.size());
        content.names.resize(inside.size());
        for (std::size_t i = 0; i < inside.size(); ++i) {
          content.took[i].add(inside[i].seconds);
          content.names[i].emplace(without_template(recorded.name_of_kind(inside[i].kind)));
        }
      }
      inside.clear();
      before = each.kind;
    }
  }
}

const std::vector<Durations>* Places::of(const Gap& gap, const std::vector<Piece>& inside) const {
  const auto found = gaps_.find(gap);
  if (found == gaps_.end()) return nullptr;
  for (std::size_t i = 0; i < inside.size(); ++i)
    for (const std::string& name : found->second.names[i]) {
      if (inside[i].kind == Work::product && is_of_pytorch(name)) return nullptr;
      if (inside[i].kind == Work::kernel && name != inside[i].name) return nullptr;
    }
  return &found->second.took;
}

}  // namespace shard::steptime
