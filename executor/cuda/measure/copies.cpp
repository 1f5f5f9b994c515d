// Copies on one stream, and on two.
#include "executor/cuda/measure/copies.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "executor/cuda/api/events.h"

namespace shard::cuda {
namespace {

/// Two of each, for both ways at once.
struct Places {
  std::byte* device[2] = {};
  std::byte* pinned[2] = {};
  std::vector<std::byte> pageable{};
};

Result<Places> places_for(Api& api, Bytes bytes) {
  Places p;
  for (int i = 0; i < 2; ++i) {
    const Result<std::byte*> device = api.allocate(bytes);
    if (!device) return device.error();
    const Result<std::byte*> pinned = api.allocate_pinned(bytes);
    if (!pinned) return pinned.error();
    p.device[i] = *device;
    p.pinned[i] = *pinned;
    std::fill_n(*pinned, bytes.count(), std::byte{1});
  }
  p.pageable.assign(static_cast<std::size_t>(bytes.count()), std::byte{1});
  return p;
}

/// A row of copies one way.
struct Way {
  const char* name;
  std::byte* to;
  const std::byte* from;
  bool pinned;
};

Result<double> seconds_both_ways(Api& api, const Stopwatch& watch, const Places& p, std::int64_t bytes, double least) {
  const Result<Stream> back = api.make_stream("measured, back");
  if (!back) return back.error();
  Event fork = nullptr;
  Event join = nullptr;
  if (Result<void> r = make_events(api, {&fork, &join}); !r) return r.error();
  const auto both = [&]() -> Result<void> {
    Result<void> r = api.record(fork, watch.stream());
    if (r) r = api.wait(*back, fork);
    if (r) r = api.copy(watch.stream(), p.device[0], p.pinned[0], bytes);
    if (r) r = api.copy(*back, p.pinned[1], p.device[1], bytes);
    if (r) r = api.record(join, *back);
    if (r) r = api.wait(watch.stream(), join);
    return r;
  };
  return watch.seconds(both, least);
}

}  // namespace

Result<CopyRates> measure_copies(Api& api, std::span<const Bytes> sizes, double least, Measurements& into) {
  const Result<Stopwatch> watch = Stopwatch::make(api);
  if (!watch) return watch.error();
  Result<Places> places = places_for(api, sizes.back());
  if (!places) return places.error();
  const std::array<Way, 4> ways{{{"to the device, pinned", places->device[0], places->pinned[0], true},
                                 {"to the host, pinned", places->pinned[1], places->device[1], true},
                                 {"to the device, pageable", places->device[0], places->pageable.data(), false},
                                 {"to the host, pageable", places->pageable.data(), places->device[1], false}}};
  CopyRates rates;
  const auto figure = [&](const std::string& name, Bytes bytes, double rate, const char* how) {
    into.push_back({"copy " + name + ", " + std::to_string(bytes.count()) + " bytes", rate, "bytes/s", how});
  };
  for (const Way& way : ways)
    for (const Bytes bytes : sizes) {
      const auto copy = [&] { return api.copy(watch->stream(), way.to, way.from, bytes.count()); };
      const Result<double> took = watch->seconds(copy, least);
      if (!took) return took.error();
      const double rate = *took > 0 ? static_cast<double>(bytes.count()) / *took : 0;
      figure(way.name, bytes, rate, "rows of copies between two events, the fastest of three");
      if (way.pinned && bytes == sizes.front()) rates.latency = std::max(rates.latency, *took);
      if (way.pinned && bytes == sizes.back())
        rates.each_way = rates.each_way > 0 ? std::min(rates.each_way, rate) : rate;
    }
  const Result<double> both = seconds_both_ways(api, *watch, *places, sizes.back().count(), least);
  if (!both) return both.error();
  rates.both_ways = *both > 0 ? 2 * static_cast<double>(sizes.back().count()) / *both : 0;
  figure("both ways at once, pinned", sizes.back(), rates.both_ways,
         "two streams, both copies over the time until the later one had ended, the fastest of three rows");
  for (int i = 0; i < 2; ++i) {
    api.free(places->device[i]);
    api.free_pinned(places->pinned[i]);
  }
  return rates;
}

}  // namespace shard::cuda
