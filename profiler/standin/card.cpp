// Reading the environment.
#include "profiler/standin/card.h"

#include <cstdlib>
#include <cstring>

namespace shard::standin {
namespace {

/// The text behind "KEY=" in a list with commas; its length in `length`.
const char* value_of(const char* list, const char* key, std::size_t& length) {
  const std::size_t key_length = std::strlen(key);
  while (list != nullptr && *list != '\0') {
    const char* const end = std::strchr(list, ',');
    if (std::strncmp(list, key, key_length) == 0 && list[key_length] == '=') {
      list += key_length + 1;
      length = end == nullptr ? std::strlen(list) : static_cast<std::size_t>(end - list);
      return list;
    }
    list = end == nullptr ? nullptr : end + 1;
  }
  return nullptr;
}

Card read() {
  Card card;
  const char* const list = std::getenv("SHARDSCOPE_STANDIN");
  std::size_t length = 0;
  const auto number = [&](const char* key, long long otherwise) {
    const char* const text = value_of(list, key, length);
    return text == nullptr ? otherwise : std::atoll(text);
  };
  card.compute_capability = static_cast<int>(number("cc", card.compute_capability));
  card.multiprocessors = static_cast<int>(number("sms", card.multiprocessors));
  card.threads_per_multiprocessor = static_cast<int>(number("threads", card.threads_per_multiprocessor));
  card.bytes = static_cast<std::size_t>(number("bytes", static_cast<long long>(card.bytes)));
  card.upwards = number("upwards", 0) != 0;
  card.count = static_cast<int>(number("count", card.count));
  card.cuda_version = static_cast<int>(number("cuda", card.cuda_version));
  if (const char* const name = value_of(list, "name", length); name != nullptr && length < sizeof(card.name)) {
    std::memcpy(card.name, name, length);
    card.name[length] = '\0';
  }
  return card;
}

}  // namespace

const Card& card() {
  static const Card card = read();
  return card;
}

}  // namespace shard::standin
