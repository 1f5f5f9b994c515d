// A stack of open operators for each thread.
#include "sim/price/operator_walk.h"

#include <algorithm>
#include <utility>

namespace shard::price {
namespace {

bool has_tensors(const import::KinetoOperator& each) {
  return std::ranges::any_of(each.inputs, [](const auto& input) { return !input.sizes.empty(); });
}

}  // namespace

OperatorWalk::OperatorWalk(const std::vector<import::KinetoOperator>& operators) : operators_(operators) {
  for (std::size_t i = 0; i < operators.size(); ++i)
    threads_[operators[i].thread].order.push_back(static_cast<std::int32_t>(i));
  for (auto& [number, thread] : threads_)
    std::ranges::stable_sort(thread.order, [this](std::int32_t a, std::int32_t b) {
      return std::pair(of(a).begin_ns, -of(a).end_ns) < std::pair(of(b).begin_ns, -of(b).end_ns);
    });
}

void OperatorWalk::leave(Thread& thread, std::int64_t time_ns) const {
  while (!thread.open.empty() && of(thread.open.back()).end_ns < time_ns) thread.open.pop_back();
}

bool OperatorWalk::to(std::int64_t number, std::int64_t time_ns) {
  at_ = nullptr;
  begun_ = 0;
  const auto found = threads_.find(number);
  if (found == threads_.end()) return false;
  Thread& thread = found->second;
  for (; thread.next < thread.order.size() && of(thread.order[thread.next]).begin_ns <= time_ns; ++thread.next) {
    leave(thread, of(thread.order[thread.next]).begin_ns);
    thread.open.push_back(thread.order[thread.next]);
    ++begun_;
  }
  leave(thread, time_ns);
  at_ = &thread;
  return true;
}

std::int32_t OperatorWalk::innermost_with_tensors() const {
  if (at_ == nullptr || at_->open.empty()) return -1;
  for (std::size_t i = at_->open.size(); i > 0; --i)
    if (has_tensors(of(at_->open[i - 1]))) return at_->open[i - 1];
  return at_->open.back();
}

std::int32_t OperatorWalk::innermost_with_ranks() const {
  for (std::size_t i = at_ == nullptr ? 0 : at_->open.size(); i > 0; --i)
    if (!of(at_->open[i - 1]).process_group.empty()) return at_->open[i - 1];
  return -1;
}

std::int32_t OperatorWalk::outermost() const {
  return at_ == nullptr || at_->open.empty() ? -1 : at_->open.front();
}

}  // namespace shard::price
