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

/// The cards that CUDA_VISIBLE_DEVICES leaves, until one is refused: each one's number among all, and the name that it
/// is called by there. Up to the first that is no number of a card, as the driver does; of names (GPU-..., MIG-...) the
/// first is the first card's, since they come from another machine.
template <class Use>
void each_visible(const Use& use) {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (int i = 0; i < card().count; ++i)
      if (!use(i, std::string_view())) return;
    return;
  }
  for (int named = 0; *list != '\0' && named < card().count; ++named) {
    const char* const comma = std::strchr(list, ',');
    const std::string_view entry(list, comma == nullptr ? std::strlen(list) : static_cast<std::size_t>(comma - list));
    char* end = nullptr;
    const long number = std::strtol(list, &end, 10);
    const bool is_name = entry.starts_with("GPU-") || entry.starts_with("MIG-");
    if (end == list ? !is_name : number < 0 || number >= card().count) return;
    if (!use(end == list ? named : static_cast<int>(number), end == list ? entry : std::string_view())) return;
    if (comma == nullptr) return;
    list = comma + 1;
  }
}

}  // namespace

const Card& card() {
  static const Card card = read();
  return card;
}

int visible_cards() {
  int count = 0;
  each_visible([&](int, std::string_view) { return ++count > 0; });
  return count;
}

int card_of_device(int device) {
  int found = device, at = 0;
  each_visible([&](int number, std::string_view) {
    if (at == device) found = number;
    return at++ != device;
  });
  return found;
}

int device_of_card(int card) {
  int found = 0, at = 0;
  each_visible([&](int number, std::string_view) {
    if (number == card) found = at;
    return at++, number != card;
  });
  return found;
}

std::string_view visible_name_of(int card) {
  std::string_view found;
  each_visible([&](int number, std::string_view name) {
    if (number == card) found = name;
    return number != card;
  });
  return found;
}

}  // namespace shard::standin
