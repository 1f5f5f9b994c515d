// Each is a few instructions: load the name's address, jump to the handler of unknown functions (unknown.cpp).
#include "profiler/standin/made_up.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "profiler/standin/handles.h"

STANDIN long shardscope_standin_unknown(const char* name);

namespace shard::standin {
namespace {

constexpr std::size_t kPage = 4096, kBytes = 32;

struct MadeUp {
  std::mutex mutex;
  std::map<std::string, void*> functions;
  unsigned char* page = nullptr;
  std::size_t used = kPage;
};
MadeUp& made_up() {
  static auto* const made_up = new MadeUp;
  return *made_up;
}

/// mov rdi, name; mov rax, handler; jmp rax.
void write_code(unsigned char* at, const char* name) {
  const auto put = [&at](const auto& value) {
    std::memcpy(at, &value, sizeof(value));
    at += sizeof(value);
  };
  constexpr unsigned char kToFirstArgument[] = {0x48, 0xbf}, kToScratch[] = {0x48, 0xb8}, kJump[] = {0xff, 0xe0};
  put(kToFirstArgument);
  put(reinterpret_cast<std::uintptr_t>(name));
  put(kToScratch);
  put(reinterpret_cast<std::uintptr_t>(&shardscope_standin_unknown));
  put(kJump);
}

}  // namespace

void* made_up_function(const char* name) {
  MadeUp& all = made_up();
  const std::lock_guard lock(all.mutex);
  const auto [entry, is_new] = all.functions.emplace(name, nullptr);
  if (!is_new) return entry->second;
  if (all.used + kBytes > kPage) {
    void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return nullptr;
    all.page = static_cast<unsigned char*>(page);
    all.used = 0;
  }
  write_code(all.page + all.used, entry->first.c_str());
  entry->second = all.page + all.used;
  all.used += kBytes;
  return entry->second;
}

}  // namespace shard::standin
