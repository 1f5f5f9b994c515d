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
  card.behind = number("behind", 0);
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

int visible_cards() {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) return card().count;
  int named = 0;
  // Up to the first that is no number of a card, as the driver does; a name (GPU-..., MIG-...) is one that is there.
  while (*list != '\0' && named < card().count) {
    char* end = nullptr;
    const long number = std::strtol(list, &end, 10);
    if (end != list && (number < 0 || number >= card().count)) break;
    if (end == list && std::strncmp(list, "GPU-", 4) != 0 && std::strncmp(list, "MIG-", 4) != 0) break;
    ++named;
    const char* const comma = std::strchr(list, ',');
    if (comma == nullptr) break;
    list = comma + 1;
  }
  return named;
}

}  // namespace shard::standin
