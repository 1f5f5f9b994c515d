// Streams, events, captures and graphs of the emulated device.
#include <algorithm>
#include <utility>

#include "executor/cuda/emulated/device.h"

namespace shard::cuda::emulated {

Result<Stream> Device::make_stream(std::string_view name) {
  if (auto error = enter("make_stream")) return *error;
  DeviceStream& stream = streams_.emplace_back();
  stream.device = this;
  stream.number = scheduler_.add_stream();
  stream.name = name;
  stream.outside = std::make_shared<OpRecord>(OpRecord{"work of no op on stream '" + stream.name + "'", {}});
  order_.add_stream();
  return reinterpret_cast<Stream>(&stream);
}

Result<Event> Device::make_event() {
  if (auto error = enter("make_event")) return *error;
  return reinterpret_cast<Event>(&events_.emplace_back());
}

Result<void> Device::record(Event event, Stream handle) {
  DeviceStream& stream = of(handle);
  if (auto error = enter("record", stream)) return *error;
  auto moment = std::make_shared<Moment>();
  if (stream.capture != nullptr) {
    moment->capture = stream.capture;
    moment->nodes = stream.last;
  } else {
    moment->clock = order_.now(stream.number);
    scheduler_.enqueue_end(stream.number, moment);
  }
  reinterpret_cast<DeviceEvent*>(event)->moment = std::move(moment);
  return {};
}

Result<void> Device::wait(Stream handle, Event event) {
  DeviceStream& stream = of(handle);
  if (auto error = enter("wait", stream)) return *error;
  const std::shared_ptr<Moment>& moment = reinterpret_cast<DeviceEvent*>(event)->moment;
  if (moment == nullptr) return {};
  if (moment->capture != nullptr) {
    if (moment->capture->ended)
      return misuse(stream, "stream '" + stream.name + "' waits for an event of a capture that ended");
    if (stream.capture != nullptr && stream.capture != moment->capture)
      return misuse(stream, "stream '" + stream.name + "' waits for an event of another capture");
    stream.capture = moment->capture;
    for (const std::int32_t node : moment->nodes) {
      if (std::ranges::find(stream.last, node) == stream.last.end()) stream.last.push_back(node);
    }
    return {};
  }
  if (stream.capture != nullptr)
    return misuse(stream, "stream '" + stream.name + "' is captured and waits for an event from outside the capture");
  if (const ToldCall call(options_.activity, "cudaStreamWaitEvent"); options_.activity != nullptr)
    options_.activity->stream_waits(options_.number, static_cast<std::uint32_t>(stream.number), call.number(),
                                    EmulatedActivity::now_ns());
  order_.waits(stream.number, moment->clock);
  if (!moment->done) scheduler_.enqueue_wait(stream.number, moment);
  return {};
}

Result<bool> Device::is_done(Event event) {
  if (auto error = enter("is_done")) return *error;
  if (captures_ > 0) return fail({Errc::internal, "is_done() while a stream is captured", "", ""});
  const std::shared_ptr<Moment>& moment = reinterpret_cast<DeviceEvent*>(event)->moment;
  if (moment == nullptr) return true;
  if (moment->capture != nullptr) return fail({Errc::internal, "is_done() of an event of a capture", "", ""});
  if (!moment->done && !stopped_) {
    if (auto error = scheduler_.run(*moment, options_.work_per_question)) return fail(std::move(*error));
  }
  if (moment->done) order_.host_saw(moment->clock);
  return moment->done;
}

Result<double> Device::seconds_between(Event begin, Event end) {
  if (auto error = enter("seconds_between")) return *error;
  const Moment* const first = reinterpret_cast<DeviceEvent*>(begin)->moment.get();
  const Moment* const last = reinterpret_cast<DeviceEvent*>(end)->moment.get();
  if (first == nullptr || last == nullptr || !first->done || !last->done)
    return fail({Errc::internal, "seconds_between() of events that are not done", "", ""});
  return last->seconds - first->seconds;
}

Result<void> Device::begin_capture(Stream origin) {
  if (auto error = enter("begin_capture")) return *error;
  DeviceStream& stream = of(origin);
  if (stream.capture != nullptr) return misuse(stream, "stream '" + stream.name + "' is captured already");
  stream.capture = std::make_shared<Capture>();
  stream.capture->origin = &stream;
  ++captures_;
  return {};
}

Result<Graph> Device::end_capture(Stream origin) {
  if (auto error = enter("end_capture")) return *error;
  DeviceStream& stream = of(origin);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr || capture->origin != &stream)
    return misuse(stream, "no capture began at stream '" + stream.name + "'");
  // Events that were recorded in the capture outlive it, and keep no graph.
  const std::shared_ptr<GraphWork> graph = std::move(capture->graph);
  const auto apart = graph->not_before(stream.last);
  capture->ended = true;
  --captures_;
  for (DeviceStream& each : streams_) {
    if (each.capture != capture) continue;
    each.capture = nullptr;
    each.last.clear();
  }
  if (apart)
    return fail({Errc::internal,
                 "the capture ends at stream '" + stream.name + "', which waits for no event behind " +
                     graph->step(*apart).op->label,
                 "", ""});
  const auto conflict = options_.check_order ? graph->check() : std::nullopt;
  if (conflict) return fail(conflict_error(*conflict));
  if (options_.activity != nullptr) graph->clone_nodes(*options_.activity);
  graphs_[graph.get()] = graph;
  return reinterpret_cast<Graph>(graph.get());
}

Result<void> Device::launch_graph(Graph handle, Stream to) {
  DeviceStream& stream = of(to);
  if (auto error = enter("launch_graph", stream)) return *error;
  if (stream.capture != nullptr)
    return misuse(stream, "a graph is launched on stream '" + stream.name + "', which is captured");
  const auto found = graphs_.find(reinterpret_cast<const GraphWork*>(handle));
  if (found == graphs_.end()) return misuse(stream, "a graph is launched that was destroyed");
  for (const Access& access : found->second->accesses()) {
    const DeviceMemory::Block* const block = memory_->find(access.begin);
    if (memory_->is_device(access.begin) &&
        (block == nullptr || !block->holds(access.begin, access.end - access.begin)))
      return fail({Errc::internal, "a graph is launched that touches freed memory", access.op->label, ""});
  }
  if (options_.check_order) {
    if (const auto conflict = order_.enqueued(stream.number, found->second->accesses()))
      return fail(conflict_error(*conflict));
  }
  const ToldCall call(options_.activity, "cudaGraphLaunch");
  scheduler_.enqueue(stream.number, found->second, call.number());
  return {};
}

void Device::destroy_graph(Graph graph) {
  const auto found = graphs_.find(reinterpret_cast<const GraphWork*>(graph));
  if (found == graphs_.end()) return;
  found->second->destroy();
  graphs_.erase(found);
}

}  // namespace shard::cuda::emulated
