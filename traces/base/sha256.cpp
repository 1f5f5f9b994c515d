// The standard's sections 5 and 6.2, word by word.
#include "traces/base/sha256.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace shard {
namespace {

using Word = std::uint32_t;

/// The first 32 bits of the fractions of the cube roots of the first 64 primes (section 4.2.2).
constexpr std::array<Word, 64> kConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// Likewise of the square roots of the first 8 (section 5.3.3).
constexpr std::array<Word, 8> kStart{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

constexpr std::size_t kBlock = 64;

Word rotated(Word x, int by) {
  return std::rotr(x, by);
}

void add_block(std::array<Word, 8>& hash, const unsigned char* bytes) {
  std::array<Word, 64> w{};
  for (std::size_t t = 0; t < 16; ++t)
    w[t] = Word{bytes[4 * t]} << 24 | Word{bytes[4 * t + 1]} << 16 | Word{bytes[4 * t + 2]} << 8 | bytes[4 * t + 3];
  for (std::size_t t = 16; t < 64; ++t) {
    const Word s0 = rotated(w[t - 15], 7) ^ rotated(w[t - 15], 18) ^ w[t - 15] >> 3;
    const Word s1 = rotated(w[t - 2], 17) ^ rotated(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = hash;
  for (std::size_t t = 0; t < 64; ++t) {
    const Word s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const Word one = h + s1 + ((e & f) ^ (~e & g)) + kConstants[t] + w[t];
    const Word s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const Word two = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<Word, 8> more{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] += more[i];
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  std::array<Word, 8> hash = kStart;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) add_block(hash, bytes + at);
  // A one, zeros, and the length in bits.
  std::string tail(text.substr(at));
  tail.push_back(static_cast<char>(0x80));
  while (tail.size() % kBlock != kBlock - 8) tail.push_back('\0');
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) tail.push_back(static_cast<char>(bits >> shift & 0xff));
  for (std::size_t i = 0; i < tail.size(); i += kBlock)
    add_block(hash, reinterpret_cast<const unsigned char*>(tail.data()) + i);
  std::string hex;
  for (const Word word : hash)
    for (int shift = 28; shift >= 0; shift -= 4) hex.push_back("0123456789abcdef"[word >> shift & 0xf]);
  return hex;
}

}  // namespace shard
