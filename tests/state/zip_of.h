// Zips of stored entries, as torch.save writes them, taken apart and put together: for files with a pickle of a test's
// own.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace shard::test {

using ZipEntries = std::map<std::string, std::string>;

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

/// With right checksums.
inline std::string zip_of(const ZipEntries& entries) {
  std::string zip, directory;
  for (const auto& [name, content] : entries) {
    const auto crc = static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    const std::string common = little(0, 2) + little(0, 2) + little(0, 4) + little(crc, 4) + little(content.size(), 4) +
                               little(content.size(), 4) + little(name.size(), 2) + little(0, 2);
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + common + little(0, 2) + little(0, 2) + little(0, 2) +
                 little(0, 4) + little(zip.size(), 4) + name;
    zip += "PK\x03\x04" + little(20, 2) + common + name + content;
  }
  const std::string count = little(entries.size(), 2);
  return zip + directory + "PK\x05\x06" + little(0, 4) + count + count + little(directory.size(), 4) +
         little(zip.size(), 4) + little(0, 2);
}

/// Of a whole zip without compression. What it says of itself is believed.
inline ZipEntries entries_of(std::string_view zip) {
  const auto number = [&](std::size_t at, int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(zip[at + static_cast<std::size_t>(i)])) << (8 * i);
    return value;
  };
  ZipEntries entries;
  for (std::size_t at = zip.find("PK\x01\x02"); at != std::string_view::npos && zip.substr(at, 4) == "PK\x01\x02";) {
    const std::size_t size = number(at + 20, 4), name = number(at + 28, 2), local = number(at + 42, 4);
    const std::size_t data = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    entries[std::string(zip.substr(at + 46, name))] = zip.substr(data, size);
    at += 46 + name + number(at + 30, 2) + number(at + 32, 2);
  }
  return entries;
}

}  // namespace shard::test
