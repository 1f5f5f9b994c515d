// One readable and executable segment (tables, texts, code), one writable (the dynamic section, the handler's address).
#include "profiler/dryrun/stub_library.h"

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace shard::dryrun {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kStubBytes = 16;

class Image {
 public:
  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }
  void align(std::uint64_t to) { bytes_.resize((bytes_.size() + to - 1) / to * to); }
  template <class T>
  std::uint64_t add(const T& value) {
    const std::uint64_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    put(at, value);
    return at;
  }
  template <class T>
  void put(std::uint64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  std::uint64_t text(std::string_view text) {
    const std::uint64_t at = bytes_.size();
    bytes_.resize(at + text.size() + 1);
    std::memcpy(bytes_.data() + at, text.data(), text.size());
    return at;
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// The hash of the System V ABI.
std::uint32_t elf_hash(std::string_view name) {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    const std::uint32_t high = hash & 0xf0000000;
    hash = (hash ^ high >> 24) & ~high;
  }
  return hash;
}

/// From the end of an instruction at `from` to `to`.
std::int32_t relative(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from));
}

}  // namespace

std::vector<std::byte> stub_library(const std::set<std::string>& names, std::string_view soname,
                                    const StubTarget& target) {
  Image image;
  const std::uint64_t header_at = image.add(Elf64_Ehdr{});
  const std::uint64_t segments_at = image.add(std::array<Elf64_Phdr, 4>{});
  // Texts; the first is empty.
  const std::uint64_t texts_at = image.text("");
  const std::uint64_t soname_at = image.text(soname), needed_at = image.text(target.library);
  const std::uint64_t handler_at = image.text(target.handler);
  std::vector<std::uint64_t> name_at;
  for (const std::string& name : names) name_at.push_back(image.text(name));
  const std::uint64_t texts_bytes = image.size() - texts_at;
  // Symbols: none, the handler, the names. Their code follows below.
  image.align(8);
  const std::uint64_t symbols_at = image.add(Elf64_Sym{});
  const auto offset_of = [&](std::uint64_t text) { return static_cast<Elf64_Word>(text - texts_at); };
  Elf64_Sym undefined{};
  undefined.st_name = offset_of(handler_at);
  undefined.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  image.add(undefined);
  for (std::size_t i = 0; i < names.size(); ++i) image.add(Elf64_Sym{});
  const auto symbol_at = [&](std::size_t name) { return symbols_at + (2 + name) * sizeof(Elf64_Sym); };
  // The hash table: buckets, then chains.
  const auto count = static_cast<std::uint32_t>(names.size());
  const std::uint32_t buckets = count + 1;
  std::vector<std::uint32_t> hash(2 + buckets + 2 + count);
  hash[0] = buckets;
  hash[1] = 2 + count;
  std::uint32_t symbol = 2;
  for (const std::string& name : names) {
    std::uint32_t& first = hash[2 + elf_hash(name) % buckets];
    hash[2 + buckets + symbol] = first;
    first = symbol++;
  }
  const std::uint64_t hash_at = image.size();
  for (const std::uint32_t word : hash) image.add(word);
  // The handler's address stands in the second segment, whose place the code's length decides.
  image.align(kStubBytes);
  const std::uint64_t code_at = image.size();
  const std::uint64_t code_end = code_at + count * kStubBytes;
  const std::uint64_t relocation_at = (code_end + 7) / 8 * 8;
  const std::uint64_t read_only_end = relocation_at + sizeof(Elf64_Rela);
  const std::uint64_t writable_at = (read_only_end + kPage - 1) / kPage * kPage;
  const std::uint64_t address_at = writable_at;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::uint64_t at = image.size();
    constexpr std::array<unsigned char, 3> kLoadName = {0x48, 0x8d, 0x3d};  // lea rdi, [rip + name]
    constexpr std::array<unsigned char, 2> kJump = {0xff, 0x25};            // jmp [rip + address of the handler]
    image.add(kLoadName);
    image.add(relative(at + 7, name_at[i]));
    image.add(kJump);
    image.add(relative(at + 13, address_at));
    image.align(kStubBytes);
    Elf64_Sym entry{};
    entry.st_name = offset_of(name_at[i]);
    entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    entry.st_shndx = 1;  // any but undefined: there are no sections
    entry.st_value = at;
    entry.st_size = kStubBytes;
    image.put(symbol_at(i), entry);
  }
  image.align(8);
  Elf64_Rela relocation{};
  relocation.r_offset = address_at;
  relocation.r_info = ELF64_R_INFO(std::uint64_t{1}, R_X86_64_GLOB_DAT);
  image.add(relocation);
  image.align(kPage);
  image.add(std::uint64_t{0});
  const std::array<Elf64_Dyn, 11> dynamic{{{DT_NEEDED, {needed_at - texts_at}},
                                           {DT_SONAME, {soname_at - texts_at}},
                                           {DT_HASH, {hash_at}},
                                           {DT_STRTAB, {texts_at}},
                                           {DT_SYMTAB, {symbols_at}},
                                           {DT_STRSZ, {texts_bytes}},
                                           {DT_SYMENT, {sizeof(Elf64_Sym)}},
                                           {DT_RELA, {relocation_at}},
                                           {DT_RELASZ, {sizeof(Elf64_Rela)}},
                                           {DT_RELAENT, {sizeof(Elf64_Rela)}},
                                           {DT_NULL, {0}}}};
  const std::uint64_t dynamic_at = image.add(dynamic);
  const std::uint64_t end = image.size();

  const auto segment = [](Elf64_Word type, Elf64_Word flags, std::uint64_t at, std::uint64_t to, std::uint64_t align) {
    Elf64_Phdr header{};
    header.p_type = type;
    header.p_flags = flags;
    header.p_offset = header.p_vaddr = header.p_paddr = at;
    header.p_filesz = header.p_memsz = to - at;
    header.p_align = align;
    return header;
  };
  image.put(segments_at, std::array{segment(PT_LOAD, PF_R | PF_X, 0, read_only_end, kPage),
                                    segment(PT_LOAD, PF_R | PF_W, writable_at, end, kPage),
                                    segment(PT_DYNAMIC, PF_R | PF_W, dynamic_at, dynamic_at + sizeof(dynamic), 8),
                                    segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16)});
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = segments_at;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 4;
  image.put(header_at, header);
  return image.take();
}

}  // namespace shard::dryrun
