// The SHA-256 of a run's state, with OpenSSL.
#include "executor/state/digest.h"

#include <openssl/sha.h>

#include <array>

namespace shard {
namespace {

std::string sha256(const void* data, std::size_t bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> out{};
  SHA256(static_cast<const unsigned char*>(data), bytes, out.data());
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

std::string hex_of(const std::string& bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kHex[(static_cast<unsigned char>(c) >> 4) & 15];
    hex += kHex[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

}  // namespace

void StateDigest::add(std::int32_t param, int content, std::span<const std::byte> bytes) {
  parts_[{param, content}] = sha256(bytes.data(), bytes.size());
}

std::string StateDigest::finish(std::int64_t steps) const {
  std::string all = "steps " + std::to_string(steps) + '\n';
  for (const auto& [key, digest] : parts_)
    all += std::to_string(key.first) + ' ' + std::to_string(key.second) + ' ' + digest + '\n';
  return hex_of(sha256(all.data(), all.size()));
}

std::string sha256_of(std::span<const std::byte> bytes) {
  return sha256(bytes.data(), bytes.size());
}

std::string digest_of_parts(std::span<const std::string> parts) {
  std::string all = "parts " + std::to_string(parts.size()) + '\n';
  for (const std::string& part : parts) all += part + '\n';
  return hex_of(sha256(all.data(), all.size()));
}

}  // namespace shard
