// Few lanes are walked; many are leaves of a tree of maxima, with a heap that says which lanes have changed by time.
#include "traces/lane_fit.h"

#include <algorithm>
#include <functional>

namespace shard {
namespace {

constexpr std::size_t kFewLanes = 16;

}  // namespace

void LaneFit::clear() {
  open_.clear();
  room_.clear();
  closings_.clear();
  leaves_ = 0;
}

void LaneFit::close(std::size_t lane, std::int64_t begin) {
  std::vector<std::int64_t>& open = open_[lane];
  while (!open.empty() && open.back() <= begin) open.pop_back();
}

LaneFit::Slot LaneFit::place(std::int64_t begin, std::int64_t end) {
  std::size_t lane = 0;
  if (leaves_ == 0) {
    for (; lane < open_.size(); ++lane) {
      close(lane, begin);
      if (open_[lane].empty() || end <= open_[lane].back()) break;
    }
  } else {
    lane = first_fit_of_many(begin, end);
  }
  if (lane == open_.size()) open_.emplace_back();
  std::vector<std::int64_t>& open = open_[lane];
  const std::size_t depth = open.size();
  open.push_back(end);
  if (leaves_ == 0 ? open_.size() > kFewLanes : open_.size() == leaves_) {
    build_tree();
  } else if (leaves_ != 0) {
    set_room(lane);
    closings_.emplace_back(end, lane);
    std::push_heap(closings_.begin(), closings_.end(), std::greater<>());
  }
  return {lane, depth};
}

std::size_t LaneFit::first_fit_of_many(std::int64_t begin, std::int64_t end) {
  while (!closings_.empty() && closings_.front().first <= begin) {
    const std::size_t lane = closings_.front().second;
    std::pop_heap(closings_.begin(), closings_.end(), std::greater<>());
    closings_.pop_back();
    close(lane, begin);
    set_room(lane);
  }
  std::size_t node = 1;
  while (node < leaves_) node = room_[2 * node] >= end ? 2 * node : 2 * node + 1;
  return node - leaves_;
}

/// There is always a leaf that is not in use.
void LaneFit::build_tree() {
  leaves_ = std::max<std::size_t>(2 * kFewLanes, 2 * leaves_);
  room_.assign(2 * leaves_, INT64_MAX);
  closings_.clear();
  for (std::size_t lane = 0; lane < open_.size(); ++lane) {
    if (!open_[lane].empty()) room_[leaves_ + lane] = open_[lane].back();
    for (const std::int64_t end : open_[lane]) closings_.emplace_back(end, lane);
  }
  std::make_heap(closings_.begin(), closings_.end(), std::greater<>());
  for (std::size_t node = leaves_ - 1; node > 0; --node) room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
}

void LaneFit::set_room(std::size_t lane) {
  std::size_t node = leaves_ + lane;
  room_[node] = open_[lane].empty() ? INT64_MAX : open_[lane].back();
  for (node /= 2; node > 0; node /= 2) {
    const std::int64_t most = std::max(room_[2 * node], room_[2 * node + 1]);
    if (room_[node] == most) break;
    room_[node] = most;
  }
}

}  // namespace shard
