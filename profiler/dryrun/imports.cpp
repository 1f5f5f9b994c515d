// ELF of 64 bits, little-endian: section headers name the dynamic symbols and their texts (elf(5)). Libraries are a
// gigabyte long and their symbols at one end, so only these are read.
#include "profiler/dryrun/imports.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

namespace shard::dryrun {
namespace {

/// A table of symbols that is longer is none.
constexpr std::uint64_t kLongestTable = std::uint64_t{256} << 20;

/// Texts of longer files are not looked through: what asks for functions by name is small.
constexpr std::uintmax_t kLongestText = std::uintmax_t{8} << 20;
constexpr std::size_t kLongestName = 64;

/// So many bytes from an offset on; fewer at the end of the file.
using Read = std::function<std::vector<std::byte>(std::uint64_t offset, std::uint64_t bytes)>;

template <class T>
std::optional<T> value_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Up to the zero behind it.
std::string_view text_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const std::string_view rest(reinterpret_cast<const char*>(bytes.data()) + offset, bytes.size() - offset);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

/// The driver: cuMemAlloc, cuLaunchKernel.
bool is_of_driver(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
}

bool is_of_cuda(std::string_view name) {
  constexpr std::array<std::string_view, 10> kPrefixes = {"cuda",     "__cuda",   "cublas", "cudnn",  "nccl",
                                                          "cusparse", "cusolver", "cufft",  "curand", "nvml"};
  return is_of_driver(name) ||
         std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// The dynamic symbols that `wanted` takes, by name.
template <class Wanted>
std::set<std::string> symbols_of(const Read& read, const Wanted& wanted) {
  std::set<std::string> names;
  const auto header = value_at<Elf64_Ehdr>(read(0, sizeof(Elf64_Ehdr)), 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr))
    return names;
  const std::vector<std::byte> sections = read(header->e_shoff, std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr));
  const auto section = [&](std::uint64_t index) { return value_at<Elf64_Shdr>(sections, index * sizeof(Elf64_Shdr)); };
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto symbols = section(i);
    if (!symbols || symbols->sh_type != SHT_DYNSYM || symbols->sh_size > kLongestTable) continue;
    const auto texts = section(symbols->sh_link);
    if (!texts || texts->sh_size > kLongestTable) continue;
    const std::vector<std::byte> table = read(symbols->sh_offset, symbols->sh_size);
    const std::vector<std::byte> strings = read(texts->sh_offset, texts->sh_size);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
      const Elf64_Sym symbol = *value_at<Elf64_Sym>(table, at);
      const std::string_view name = text_at(strings, symbol.st_name);
      if (!name.empty() && wanted(symbol, name)) names.emplace(name);
    }
    break;  // there is but one
  }
  return names;
}

bool is_import(const Elf64_Sym& symbol, std::string_view name) {
  return symbol.st_shndx == SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT && is_of_cuda(name);
}

bool is_export(const Elf64_Sym& symbol, std::string_view /*whatever its name*/) {
  return symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
}

template <class Wanted>
Result<std::set<std::string>> symbols_of(const std::filesystem::path& library, const Wanted& wanted) {
  const int file = ::open(library.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return Error{Errc::no_input, std::string("the library cannot be read: ") + std::strerror(errno), library.string(),
                 ""};
  const off_t end = ::lseek(file, 0, SEEK_END);
  const std::uint64_t size = end < 0 ? 0 : static_cast<std::uint64_t>(end);
  const Read read = [file, size](std::uint64_t offset, std::uint64_t bytes) {
    std::vector<std::byte> piece(offset < size ? std::min(bytes, size - offset) : 0);
    std::size_t got = 0;
    while (got < piece.size()) {
      const ssize_t more = ::pread(file, piece.data() + got, piece.size() - got, static_cast<off_t>(offset + got));
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    piece.resize(got);
    return piece;
  };
  std::set<std::string> names = symbols_of(read, wanted);
  ::close(file);
  return names;
}

}  // namespace

Result<std::set<std::string>> imported_functions(const std::filesystem::path& library) {
  return symbols_of(library, is_import);
}

Result<std::set<std::string>> exported_functions(const std::filesystem::path& library) {
  return symbols_of(library, is_export);
}

std::set<std::string> functions_named_in(std::string_view text) {
  const auto is_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::set<std::string> names;
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = std::find_if(at, text.end(), is_of_name);
    at = std::find_if_not(begin, text.end(), is_of_name);
    const std::string_view word(begin, at);
    // "..._t" is a type of such a function.
    if (word.size() <= kLongestName && is_of_driver(word) && !word.ends_with("_t")) names.emplace(word);
  }
  return names;
}

std::set<std::string> named_functions(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error || bytes > kLongestText) return {};
  std::string text(bytes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return functions_named_in(text);
}

std::set<std::string> imported_functions(std::span<const std::byte> elf) {
  const Read read = [elf](std::uint64_t offset, std::uint64_t bytes) {
    if (offset >= elf.size()) return std::vector<std::byte>();
    const auto part = elf.subspan(offset, std::min<std::uint64_t>(bytes, elf.size() - offset));
    return std::vector<std::byte>(part.begin(), part.end());
  };
  return symbols_of(read, is_import);
}

}  // namespace shard::dryrun
