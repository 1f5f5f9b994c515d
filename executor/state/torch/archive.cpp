// libzip reads the zip, the restricted unpickler its pickle.
#include "executor/state/torch/archive.h"

#include <zip.h>

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "executor/state/safetensors.h"
#include "traces/base/input_file.h"

namespace shard::torch {
namespace {

/// A pickle is names and sizes; what has more holds tensors as text, or is none.
constexpr std::uint64_t kMostPickleBytes = std::uint64_t{1} << 30;

struct CloseZip {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Zip = std::unique_ptr<zip_t, CloseZip>;
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

Error archive_fault(Errc code, std::string what, std::string where, std::string help) {
  return {.code = code, .what = std::move(what), .where = std::move(where), .help = std::move(help)};
}

constexpr const char* kWhole = "the file as torch.save wrote it";

/// What a file begins with, where it is no zip.
Error no_zip(std::string_view head, std::string where, const std::string& why) {
  if (head.starts_with("\x80\x02\x8a\x0a"))
    return archive_fault(Errc::contradiction, "is of torch.save before PyTorch 1.6, which is not read",
                         std::move(where), "torch.save(torch.load(FILE), FILE) with a newer PyTorch");
  if (head.empty()) return archive_fault(Errc::malformed, "is empty", std::move(where), kWhole);
  return archive_fault(Errc::malformed, "is no file of torch.save: " + why, std::move(where), kWhole);
}

}  // namespace

struct Archive::State {
  std::string where;
  std::string path;  ///< empty: in memory
  std::int64_t offset = 0, length = -1;
  std::span<const std::byte> bytes;

  Zip zip;
  std::string folder;  ///< of the entries, with its slash
  std::map<std::string, zip_uint64_t, std::less<>> entries;
  std::string pickle_bytes;
  std::optional<import::ByteSource> pickle_source;
  std::optional<Pickle> pickle;

  Entry entry;
  std::string entry_key;
  std::int64_t entry_at = 0;
  std::int64_t entry_bytes = 0;
  bool entry_is_stored = false;  ///< any byte of it can be gone to

  [[nodiscard]] Error fault(std::string what) const {
    return archive_fault(Errc::malformed, std::move(what), where, kWhole);
  }

  Result<void> open_zip() {
    zip_error_t error;
    zip_error_init(&error);
    const auto failed = [&](const std::string& head) -> Result<void> {
      const std::string why = zip_error_strerror(&error);
      zip_error_fini(&error);
      return no_zip(head, where, why);
    };
    zip_source_t* source = path.empty() ? zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error)
                                        : zip_source_file_create(path.c_str(), static_cast<zip_uint64_t>(offset),
                                                                 length < 0 ? 0 : length, &error);
    if (source == nullptr) return failed("?");
    zip.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
    if (zip == nullptr) {
      zip_source_free(source);
      return failed(head());
    }
    zip_error_fini(&error);
    return {};
  }

  [[nodiscard]] std::string head() const {
    std::string text(16, '\0');
    if (path.empty()) {
      text.resize(std::min(text.size(), bytes.size()));
      std::transform(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(text.size()), text.begin(),
                     [](std::byte b) { return static_cast<char>(b); });
      return text;
    }
    const Result<InputFile> file = InputFile::open(path);
    if (!file) return "?";
    const Result<std::size_t> got = file->read_at(offset, std::as_writable_bytes(std::span(text)));
    text.resize(got ? *got : 0);
    return text;
  }

  Result<void> find_entries() {
    const zip_int64_t count = zip_get_num_entries(zip.get(), 0);
    for (zip_int64_t i = 0; i < count; ++i) {
      const char* const name = zip_get_name(zip.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
      if (name == nullptr) return fault("has an entry without a name");
      entries.emplace(name, static_cast<zip_uint64_t>(i));
      const std::string_view text(name);
      constexpr std::string_view kPickle = "/data.pkl";
      if (folder.empty() && text.ends_with(kPickle)) folder = text.substr(0, text.size() - kPickle.size() + 1);
    }
    if (folder.empty()) return fault("is a zip without a data.pkl, which torch.save writes");
    if (entries.contains(folder + "constants.pkl"))
      return archive_fault(Errc::contradiction, "is a TorchScript module, whose code would have to run", where,
                           "torch.save(model.state_dict(), FILE)");
    return {};
  }

  [[nodiscard]] std::optional<zip_uint64_t> find(std::string_view name) const {
    const auto found = entries.find(folder + std::string(name));
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }

  [[nodiscard]] std::int64_t size_of(zip_uint64_t index) const {
    zip_stat_t stat;
    if (zip_stat_index(zip.get(), index, 0, &stat) != 0 || (stat.valid & ZIP_STAT_SIZE) == 0) return -1;
    return stat.size > static_cast<zip_uint64_t>(INT64_MAX) ? -1 : static_cast<std::int64_t>(stat.size);
  }

  Result<std::string> small_entry(std::string_view name, std::uint64_t most) {
    const std::optional<zip_uint64_t> index = find(name);
    if (!index) return std::string();
    const std::int64_t size = size_of(*index);
    if (size < 0 || static_cast<std::uint64_t>(size) > most)
      return fault("has a " + std::string(name) + " of " + std::to_string(size) + " bytes");
    const Entry file(zip_fopen_index(zip.get(), *index, 0));
    if (file == nullptr) return fault(std::string(name) + ": " + zip_strerror(zip.get()));
    // What is there decides, not what the entry says of itself.
    std::string text;
    std::array<char, 65536> piece;
    for (;;) {
      const zip_int64_t got = zip_fread(file.get(), piece.data(), piece.size());
      if (got < 0) return fault(std::string(name) + ": " + zip_file_strerror(file.get()));
      if (got == 0) return text;
      text.append(piece.data(), static_cast<std::size_t>(got));
      if (text.size() > most) return fault("has a " + std::string(name) + " that is longer than it says");
    }
  }

  Result<void> read_pickle() {
    const Result<std::string> order = small_entry("byteorder", 64);
    if (!order) return order.error();
    if (!order->empty() && *order != "little")
      return archive_fault(Errc::contradiction, "is of a machine whose byte order is " + safetensors::in_quotes(*order),
                           where, "a checkpoint saved on a little-endian machine");
    Result<std::string> text = small_entry("data.pkl", kMostPickleBytes);
    if (!text) return text.error();
    pickle_bytes = std::move(*text);
    pickle_source = import::ByteSource::memory(std::as_bytes(std::span(pickle_bytes)), where);
    pickle.emplace(*pickle_source, Pickle::Objects::kept);
    if (!pickle->run()) return fault("data.pkl " + pickle->error() + ", at its byte " + std::to_string(pickle->at()));
    return {};
  }

  Result<void> open() {
    if (Result<void> opened = open_zip(); !opened) return opened;
    if (Result<void> found = find_entries(); !found) return found;
    return read_pickle();
  }
};

Archive::Archive(std::unique_ptr<State> state) : state_(std::move(state)) {}
Archive::~Archive() = default;

Result<std::shared_ptr<Archive>> Archive::open(const std::filesystem::path& path, std::int64_t offset,
                                               std::int64_t length) {
  auto state = std::make_unique<State>();
  state->where = path.string() + (offset > 0 || length >= 0 ? " at byte " + std::to_string(offset) : "");
  state->path = path.string();
  state->offset = offset;
  state->length = length;
  const Result<InputFile> file = InputFile::open(path);
  if (!file)
    return archive_fault(Errc::no_input, "cannot be read: " + file.error().what, path.string(),
                         "all files of the checkpoint");
  if (!file->regular())
    return archive_fault(Errc::no_input, "is not a regular file", path.string(), "all files of the checkpoint");
  if (offset < 0 || offset > file->bytes() || (length >= 0 && length > file->bytes() - offset))
    return archive_fault(Errc::malformed,
                         "has " + std::to_string(file->bytes()) + " bytes; the checkpoint says that there are " +
                             std::to_string(length) + " from byte " + std::to_string(offset) + " on",
                         path.string(), "the file whole");
  if (length == 0 || file->bytes() == offset) return no_zip("", state->where, "");
  if (Result<void> opened = state->open(); !opened) return opened.error();
  return std::shared_ptr<Archive>(new Archive(std::move(state)));
}

Result<std::shared_ptr<Archive>> Archive::memory(std::span<const std::byte> bytes, std::string_view label) {
  auto state = std::make_unique<State>();
  state->where = label;
  state->bytes = bytes;
  if (bytes.empty()) return no_zip("", state->where, "");
  if (Result<void> opened = state->open(); !opened) return opened.error();
  return std::shared_ptr<Archive>(new Archive(std::move(state)));
}

const Pickle& Archive::pickle() const {
  return *state_->pickle;
}
const std::string& Archive::where() const {
  return state_->where;
}

std::int64_t Archive::storage_bytes(std::string_view key) const {
  if (state_->zip == nullptr && !state_->open_zip()) return -1;
  const std::optional<zip_uint64_t> index = state_->find("data/" + std::string(key));
  return index ? state_->size_of(*index) : -1;
}

Result<void> Archive::read(std::string_view key, std::int64_t offset, std::span<std::byte> into) {
  State& s = *state_;
  const std::string name = "data/" + std::string(key);
  if (s.zip == nullptr)
    if (Result<void> opened = s.open_zip(); !opened) return opened;
  if (s.entry == nullptr || s.entry_key != key || s.entry_at > offset) {
    const std::optional<zip_uint64_t> index = s.find(name);
    if (!index) return s.fault("has no storage " + safetensors::in_quotes(key));
    s.entry.reset(zip_fopen_index(s.zip.get(), *index, 0));
    if (s.entry == nullptr) return s.fault(name + ": " + zip_strerror(s.zip.get()));
    s.entry_key = key;
    s.entry_at = 0;
    zip_stat_t stat;
    s.entry_is_stored = zip_stat_index(s.zip.get(), *index, 0, &stat) == 0 &&
                        (stat.valid & ZIP_STAT_COMP_METHOD) != 0 && stat.comp_method == ZIP_CM_STORE;
    s.entry_bytes = s.size_of(*index);
  }
  if (s.entry_at != offset) {
    if (s.entry_is_stored) {
      if (zip_fseek(s.entry.get(), offset, SEEK_SET) != 0)
        return s.fault(name + ": " + zip_file_strerror(s.entry.get()));
      s.entry_at = offset;
    } else {
      std::array<std::byte, 65536> passed;
      while (s.entry_at < offset) {
        const auto n = static_cast<zip_uint64_t>(std::min<std::int64_t>(offset - s.entry_at, passed.size()));
        const zip_int64_t got = zip_fread(s.entry.get(), passed.data(), n);
        if (got <= 0) return s.fault(name + " ends before its byte " + std::to_string(offset));
        s.entry_at += got;
      }
    }
  }
  while (!into.empty()) {
    const zip_int64_t got = zip_fread(s.entry.get(), into.data(), into.size());
    if (got < 0) return s.fault(name + ": " + zip_file_strerror(s.entry.get()));
    if (got == 0) return s.fault(name + " ends at its byte " + std::to_string(s.entry_at));
    into = into.subspan(static_cast<std::size_t>(got));
    s.entry_at += got;
  }
  // The checksum of an entry that was read in order is compared by the read that finds its end.
  if (std::byte none; s.entry_at == s.entry_bytes && zip_fread(s.entry.get(), &none, 1) < 0)
    return archive_fault(
        Errc::malformed, name + " is not what was saved: its bytes have another checksum", s.where,
        "the file as torch.save wrote it; with torch.serialization.set_crc32_options(False) it has none");
  return {};
}

void Archive::rest() {
  state_->entry.reset();
  state_->zip.reset();
}

}  // namespace shard::torch
