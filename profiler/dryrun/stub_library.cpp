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

Elf64_Phdr segment(Elf64_Word type, Elf64_Word flags, std::uint64_t at, std::uint64_t to, std::uint64_t align) {
  Elf64_Phdr header{};
  header.p_type = type;
  header.p_flags = flags;
  header.p_offset = header.p_vaddr = header.p_paddr = at;
  header.p_filesz = header.p_memsz = to - at;
  header.p_align = align;
  return header;
}

Elf64_Ehdr header_with(std::uint64_t segments_at, Elf64_Half segments) {
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
  header.e_phnum = segments;
  return header;
}

/// The library's parts, one behind the other, written in this order. All addresses are offsets in the file.
class Library {
 public:
  explicit Library(const std::set<std::string>& names) : names_(names) {
    header_at_ = image_.add(Elf64_Ehdr{});
    segments_at_ = image_.add(std::array<Elf64_Phdr, kSegments>{});
  }

  std::vector<std::byte> written(std::string_view soname, const StubTarget& target) {
    texts(soname, target);
    symbols();
    hash_table();
    code();
    relocation();
    dynamic();
    image_.put(segments_at_,
               std::array<Elf64_Phdr, kSegments>{segment(PT_LOAD, PF_R | PF_X, 0, read_only_end_, kPage),
                                                 segment(PT_LOAD, PF_R | PF_W, writable_at_, image_.size(), kPage),
                                                 segment(PT_DYNAMIC, PF_R | PF_W, dynamic_at_, image_.size(), 8),
                                                 segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16)});
    image_.put(header_at_, header_with(segments_at_, kSegments));
    return image_.take();
  }

 private:
  static constexpr Elf64_Half kSegments = 4;
  /// None, and the handler, stand before the names.
  static constexpr std::uint32_t kSymbolsBefore = 2;

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(names_.size()); }
  [[nodiscard]] Elf64_Word offset_of(std::uint64_t text) const { return static_cast<Elf64_Word>(text - texts_at_); }

  /// The first is empty.
  void texts(std::string_view soname, const StubTarget& target) {
    texts_at_ = image_.text("");
    soname_at_ = image_.text(soname);
    needed_at_ = image_.text(target.library);
    handler_at_ = image_.text(target.handler);
    for (const std::string& name : names_) name_at_.push_back(image_.text(name));
    texts_end_ = image_.size();
  }

  /// The names' entries are filled in where their code is written.
  void symbols() {
    image_.align(8);
    symbols_at_ = image_.add(Elf64_Sym{});
    Elf64_Sym handler{};
    handler.st_name = offset_of(handler_at_);
    handler.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    image_.add(handler);
    for (std::uint32_t i = 0; i < count(); ++i) image_.add(Elf64_Sym{});
  }

  /// Buckets, then chains.
  void hash_table() {
    const std::uint32_t buckets = count() + 1;
    std::vector<std::uint32_t> hash(2 + buckets + kSymbolsBefore + count());
    hash[0] = buckets;
    hash[1] = kSymbolsBefore + count();
    std::uint32_t symbol = kSymbolsBefore;
    for (const std::string& name : names_) {
      std::uint32_t& first = hash[2 + elf_hash(name) % buckets];
      hash[2 + buckets + symbol] = first;
      first = symbol++;
    }
    hash_at_ = image_.size();
    for (const std::uint32_t word : hash) image_.add(word);
  }

  /// The handler's address stands in the second segment, whose place the code's length decides.
  void code() {
    image_.align(kStubBytes);
    relocation_at_ = (image_.size() + count() * kStubBytes + 7) / 8 * 8;
    read_only_end_ = relocation_at_ + sizeof(Elf64_Rela);
    writable_at_ = (read_only_end_ + kPage - 1) / kPage * kPage;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::uint64_t at = image_.size();
      constexpr std::array<unsigned char, 3> kLoadName = {0x48, 0x8d, 0x3d};  // lea rdi, [rip + name]
      constexpr std::array<unsigned char, 2> kJump = {0xff, 0x25};            // jmp [rip + address of the handler]
      image_.add(kLoadName);
      image_.add(relative(at + 7, name_at_[i]));
      image_.add(kJump);
      image_.add(relative(at + 13, writable_at_));
      image_.align(kStubBytes);
      Elf64_Sym entry{};
      entry.st_name = offset_of(name_at_[i]);
      entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      entry.st_shndx = 1;  // any but undefined: there are no sections
      entry.st_value = at;
      entry.st_size = kStubBytes;
      image_.put(symbols_at_ + (kSymbolsBefore + i) * sizeof(Elf64_Sym), entry);
    }
  }

  void relocation() {
    image_.align(8);
    Elf64_Rela relocation{};
    relocation.r_offset = writable_at_;
    relocation.r_info = ELF64_R_INFO(std::uint64_t{1}, R_X86_64_GLOB_DAT);
    image_.add(relocation);
    image_.align(kPage);
    image_.add(std::uint64_t{0});
  }

  void dynamic() {
    dynamic_at_ = image_.add(std::array<Elf64_Dyn, 11>{{{DT_NEEDED, {needed_at_ - texts_at_}},
                                                        {DT_SONAME, {soname_at_ - texts_at_}},
                                                        {DT_HASH, {hash_at_}},
                                                        {DT_STRTAB, {texts_at_}},
                                                        {DT_SYMTAB, {symbols_at_}},
                                                        {DT_STRSZ, {texts_end_ - texts_at_}},
                                                        {DT_SYMENT, {sizeof(Elf64_Sym)}},
                                                        {DT_RELA, {relocation_at_}},
                                                        {DT_RELASZ, {sizeof(Elf64_Rela)}},
                                                        {DT_RELAENT, {sizeof(Elf64_Rela)}},
                                                        {DT_NULL, {0}}}});
  }

  const std::set<std::string>& names_;
  Image image_;
  std::vector<std::uint64_t> name_at_;
  std::uint64_t header_at_ = 0, segments_at_ = 0, texts_at_ = 0, texts_end_ = 0, soname_at_ = 0, needed_at_ = 0,
                handler_at_ = 0, symbols_at_ = 0, hash_at_ = 0, relocation_at_ = 0, read_only_end_ = 0,
                writable_at_ = 0, dynamic_at_ = 0;
};

}  // namespace

std::vector<std::byte> stub_library(const std::set<std::string>& names, std::string_view soname,
                                    const StubTarget& target) {
  return Library(names).written(soname, target);
}

}  // namespace shard::dryrun
