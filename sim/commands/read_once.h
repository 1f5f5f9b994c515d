// What many strategies ask for by name, read once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "traces/base/result.h"

namespace shard::commands {

/// Several threads may ask: who asks first reads, and the others wait. An error is remembered too.
template <class T>
class ReadOnce {
 public:
  using Read = Result<T> (*)(std::string_view name);
  explicit ReadOnce(Read read) : read_(read) {}

  [[nodiscard]] Result<std::shared_ptr<const T>> get(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(name);
    return known != known_.end() ? known->second : known_.emplace(name, shared(read_(name))).first->second;
  }

 private:
  using Shared = Result<std::shared_ptr<const T>>;
  static Shared shared(Result<T> read) {
    return read ? Shared(std::make_shared<const T>(std::move(*read))) : Shared(read.error());
  }

  Read read_;
  std::mutex mutex_;
  std::map<std::string, Shared, std::less<>> known_;
};

}  // namespace shard::commands
