// Names made of the card's number, and the driver's functions that tell them.
#include "profiler/standin/identity.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "profiler/standin/card.h"
#include "profiler/standin/handles.h"

namespace shard::standin {
namespace {

constexpr int kFirstBus = 0x10;

int value_of_digit(char digit) {
  return digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
}

}  // namespace

std::array<unsigned char, 16> uuid_of(int card) {
  std::array<unsigned char, 16> uuid{'s', 't', 'a', 'n', 'd', '-', 'i', 'n'};
  uuid.back() = static_cast<unsigned char>(card);
  std::string_view name = visible_name_of(card);
  if (name.size() > 4) name.remove_prefix(4);
  std::size_t at = 0;
  for (const char digit : name) {
    if (digit == '-') continue;
    if (!std::isxdigit(static_cast<unsigned char>(digit)) || at >= 2 * uuid.size()) break;
    unsigned char& byte = uuid[at / 2];
    const int value = value_of_digit(digit);
    byte = static_cast<unsigned char>(at % 2 == 0 ? value << 4 | (byte & 0xf) : (byte & 0xf0) | value);
    ++at;
  }
  return uuid;
}

std::string uuid_text(int card) {
  std::string text = "GPU-";
  const std::array<unsigned char, 16> uuid = uuid_of(card);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", uuid[i]);
    text += digits;
  }
  return text;
}

int pci_bus_of(int card) {
  return kFirstBus + card;
}

std::string pci_text(int card, int digits_of_domain) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*X:%02X:00.0", digits_of_domain, 0, pci_bus_of(card));
  return text;
}

std::optional<int> card_with_uuid(std::string_view text) {
  for (int i = 0; i < card().count; ++i)
    if (uuid_text(i) == text) return i;
  return std::nullopt;
}

std::optional<int> card_with_pci(const char* text) {
  unsigned domain = 0, bus = 0, device = 0;
  if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &device) != 3 || domain != 0 || device != 0) return std::nullopt;
  const int number = static_cast<int>(bus) - kFirstBus;
  return number >= 0 && number < card().count ? std::optional(number) : std::nullopt;
}

const char* driver_version() {
  static constexpr struct {
    int cuda;
    const char* driver;
  } kReleases[] = {{13010, "590.44.01"}, {13000, "580.65.06"}, {12090, "575.51.03"}, {12080, "570.26"},
                   {12060, "560.28.03"}, {12050, "555.42.02"}, {12040, "550.54.14"}, {12030, "545.23.06"},
                   {12020, "535.54.03"}, {12010, "530.30.02"}, {12000, "525.60.13"}};
  for (const auto& each : kReleases)
    if (card().cuda_version >= each.cuda) return each.driver;
  return "520.61.05";
}

}  // namespace shard::standin

using namespace shard::standin;

namespace {

constexpr int kInvalidValue = 1, kInvalidDevice = 101;

/// The program's number of a card; an error where it sees no such card.
int device_of_card(int* device, const std::optional<int>& card) {
  for (int i = 0; card && i < visible_cards(); ++i)
    if (card_of_device(i) == *card) {
      *device = i;
      return kSuccess;
    }
  return kInvalidDevice;
}

}  // namespace

STANDIN int cuDeviceGetUuid(void* uuid, int device) {
  if (device < 0 || device >= visible_cards()) return kInvalidDevice;
  const std::array<unsigned char, 16> found = uuid_of(card_of_device(device));
  std::memcpy(uuid, found.data(), found.size());
  return kSuccess;
}
STANDIN int cuDeviceGetUuid_v2(void* uuid, int device) {
  return cuDeviceGetUuid(uuid, device);
}
STANDIN int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (length <= 0) return kInvalidValue;
  std::snprintf(text, static_cast<std::size_t>(length), "%s", pci_text(card_of_device(device), 4).c_str());
  return kSuccess;
}
STANDIN int cuDeviceGetPCIBusId(char* text, int length, int device) {
  return cudaDeviceGetPCIBusId(text, length, device);
}
STANDIN int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return device_of_card(device, card_with_pci(text));
}
STANDIN int cuDeviceGetByPCIBusId(int* device, const char* text) {
  return device_of_card(device, card_with_pci(text));
}
