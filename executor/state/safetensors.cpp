// Headers are checked in full before anybody reads, or makes room for, a byte of a tensor.
#include "executor/state/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "executor/state/safetensors_json.h"

namespace shard::safetensors {
namespace {

using Kind = JsonEvent::Kind;

constexpr const char* kAgain = "copy the file again";
constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kMostDimensions = 64;
constexpr std::int64_t kMostElements = std::int64_t{1} << 60;
constexpr std::size_t kNameShown = 120;

Error broken(std::string_view where, std::string what, std::string help = kAgain) {
  return {Errc::malformed, std::move(what), std::string(where), std::move(help)};
}

/// What the events of a header say, tensor by tensor.
class HeaderListener final : public JsonListener {
 public:
  bool take(JsonEvent event) override {
    switch (event.kind) {
      case Kind::begin_object: return begin_object();
      case Kind::end_object: return end_object();
      case Kind::begin_list: return begin_list();
      case Kind::end_list: return numbers_ = nullptr, true;
      case Kind::key: return key(std::move(event.text));
      case Kind::text: return text(std::move(event.text));
      case Kind::number: return number(event.number);
      case Kind::other: break;
    }
    return unexpected();
  }

  std::vector<Tensor> tensors;
  std::string fault;

 private:
  bool fail(std::string what) {
    if (fault.empty()) fault = std::move(what);
    return false;
  }
  bool unexpected() {
    if (in_metadata_) return fail("\"__metadata__\" is an object of strings, and has something else");
    if (depth_ == 1) return fail("tensor " + in_quotes(name_) + " is no object of dtype, shape and data_offsets");
    return fail("tensor " + in_quotes(name_) + ": " + in_quotes(field_) +
                (field_ == "dtype" ? " is no string" : " is no list of whole numbers from 0"));
  }
  bool begin_object() {
    ++depth_;
    if (depth_ == 1) return true;
    if (depth_ > 2) return --depth_, unexpected();
    if (name_ == kMetadata) return in_metadata_ = true;
    tensors.push_back({.name = name_, .dtype = {}, .shape = {}});
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_.clear();
    return true;
  }
  bool end_object() {
    --depth_;
    if (depth_ == 0) return true;
    if (std::exchange(in_metadata_, false)) return true;
    for (const auto& [has, what] :
         {std::pair{has_dtype_, "dtype"}, {has_shape_, "shape"}, {has_offsets_, "data_offsets"}})
      if (!has) return fail("tensor " + in_quotes(name_) + " has no " + what);
    if (offsets_.size() != 2)
      return fail("data_offsets of tensor " + in_quotes(name_) + " are " + std::to_string(offsets_.size()) +
                  " numbers, not begin and end");
    tensors.back().begin = offsets_[0];
    tensors.back().end = offsets_[1];
    return true;
  }
  bool begin_list() {
    if (depth_ != 2 || in_metadata_ || numbers_ != nullptr) return unexpected();
    if (field_ == "shape") numbers_ = &tensors.back().shape;
    if (field_ == "data_offsets") numbers_ = &offsets_;
    return numbers_ != nullptr || unexpected();
  }
  bool key(std::string text) {
    if (depth_ == 1) {
      name_ = std::move(text);
      return names_.insert(name_).second || fail(in_quotes(name_) + " stands twice in the header");
    }
    if (in_metadata_) return true;
    field_ = std::move(text);
    bool* const has = field_ == "dtype"          ? &has_dtype_
                      : field_ == "shape"        ? &has_shape_
                      : field_ == "data_offsets" ? &has_offsets_
                                                 : nullptr;
    if (has == nullptr) return fail("tensor " + in_quotes(name_) + " has an unknown key " + in_quotes(field_));
    return !std::exchange(*has, true) || fail("tensor " + in_quotes(name_) + " says its " + field_ + " twice");
  }
  bool text(std::string value) {
    if (in_metadata_) return true;
    if (depth_ != 2 || field_ != "dtype" || numbers_ != nullptr) return unexpected();
    tensors.back().dtype = std::move(value);
    return true;
  }
  bool number(std::uint64_t value) {
    if (numbers_ == nullptr) return unexpected();
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      return fail("tensor " + in_quotes(name_) + ": " + std::to_string(value) + " in " + field_ + " is beyond 2^63");
    if (numbers_->size() >= kMostDimensions)
      return fail("tensor " + in_quotes(name_) + " has more than " + std::to_string(kMostDimensions) + " numbers in " +
                  field_);
    numbers_->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string name_;
  std::string field_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t>* numbers_ = nullptr;  ///< the list that is being read
  std::unordered_set<std::string> names_;
};

/// Dtype, shape and length of one tensor agree; sets its elements.
std::optional<std::string> fault_of(Tensor& t, std::int64_t data_bytes) {
  const int bits = bits_of(t.dtype);
  if (bits == 0)
    return "tensor " + in_quotes(t.name) + " has dtype " + in_quotes(t.dtype) + ", which the format does not know";
  t.elements = 1;
  const bool empty = std::ranges::find(t.shape, 0) != t.shape.end();
  for (const std::int64_t size : t.shape) {
    if (!empty && size > kMostElements / t.elements)
      return "the shape of tensor " + in_quotes(t.name) + ", " + shape_text(t.shape) + ", has more than 2^60 elements";
    t.elements = empty ? 0 : t.elements * size;
  }
  const std::string range = "[" + std::to_string(t.begin) + ", " + std::to_string(t.end) + "]";
  if (t.end < t.begin) return "data_offsets " + range + " of tensor " + in_quotes(t.name) + " end before they begin";
  if (t.end > data_bytes)
    return "data_offsets " + range + " of tensor " + in_quotes(t.name) + " end behind the file, which has " +
           std::to_string(data_bytes) + " bytes of tensors";
  // At most 2^60 elements of 64 bits: whole bytes are counted without overflow.
  const std::int64_t rest = t.elements % 8 * bits;
  const std::int64_t bytes = t.elements / 8 * bits + rest / 8;
  if (rest % 8 != 0) return "tensor " + in_quotes(t.name) + " of " + t.dtype + " does not fill whole bytes";
  if (bytes != t.end - t.begin)
    return "tensor " + in_quotes(t.name) + ", " + t.dtype + " " + shape_text(t.shape) + ", takes " +
           std::to_string(bytes) + " bytes; its data_offsets " + range + " are " + std::to_string(t.end - t.begin);
  return std::nullopt;
}

/// Reads the map of an index, and passes over what stands beside it.
class IndexListener final : public JsonListener {
 public:
  bool take(JsonEvent event) override {
    switch (event.kind) {
      case Kind::begin_object:
      case Kind::begin_list:
        if (++depth_ == 2 && map_next_) {
          if (event.kind == Kind::begin_list) return fail("\"weight_map\" is no object");
          in_map_ = has_map = true;
        }
        return !(in_map_ && depth_ > 2) || fail("\"weight_map\" gives tensor " + in_quotes(name_) + " no file");
      case Kind::end_object:
      case Kind::end_list: in_map_ = --depth_ >= 2 && in_map_; return true;
      case Kind::key: return key(std::move(event.text));
      case Kind::text: return !in_map_ ? value() : file(std::move(event.text));
      case Kind::number:
      case Kind::other: break;
    }
    return in_map_ ? fail("\"weight_map\" gives tensor " + in_quotes(name_) + " no file") : value();
  }

  std::vector<IndexEntry> entries;
  std::string fault;
  bool has_map = false;

 private:
  bool fail(std::string what) {
    if (fault.empty()) fault = std::move(what);
    return false;
  }
  bool key(std::string text) {
    if (depth_ == 1) {
      map_next_ = text == "weight_map";
      if (map_next_ && has_map) return fail("\"weight_map\" stands twice");
    }
    if (!in_map_) return true;
    name_ = std::move(text);
    return names_.insert(name_).second || fail("tensor " + in_quotes(name_) + " stands twice in \"weight_map\"");
  }
  bool value() { return !(depth_ == 1 && map_next_) || fail("\"weight_map\" is no object"); }
  bool file(std::string text) {
    // A plain name: shards lie beside their index.
    const bool plain = !text.empty() && text != "." && text != ".." && text.find('/') == std::string::npos &&
                       text.find('\\') == std::string::npos && text.find('\0') == std::string::npos;
    if (!plain)
      return fail("the file " + in_quotes(text) + " of tensor " + in_quotes(name_) +
                  " is no name in the index's own folder");
    entries.push_back({name_, std::move(text)});
    return true;
  }

  int depth_ = 0;
  bool map_next_ = false;  ///< the value that comes is weight_map's
  bool in_map_ = false;
  std::string name_;
  std::unordered_set<std::string> names_;
};

}  // namespace

const char* dtype_word(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "F32";
    case Dtype::i32: return "I32";
    case Dtype::f16: return "F16";
    case Dtype::bf16: return "BF16";
    case Dtype::i64: return "I64";
  }
  return "?";
}

int bits_of(std::string_view dtype) {
  // https://github.com/huggingface/safetensors, safetensors/src/tensor.rs, Dtype::bitsize
  static constexpr std::pair<std::string_view, int> kBits[] = {
      {"F32", 32},    {"BF16", 16},   {"F16", 16},        {"F64", 64},       {"I64", 64},    {"U64", 64},
      {"I32", 32},    {"U32", 32},    {"I16", 16},        {"U16", 16},       {"I8", 8},      {"U8", 8},
      {"BOOL", 8},    {"F8_E5M2", 8}, {"C64", 64},        {"F4", 4},         {"F6_E2M3", 6}, {"F6_E3M2", 6},
      {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};
  for (const auto& [word, bits] : kBits)
    if (word == dtype) return bits;
  return 0;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::string in_quotes(std::string_view name) {
  if (name.size() <= kNameShown) return '\'' + std::string(name) + '\'';
  std::size_t cut = kNameShown;
  while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) --cut;  // not inside a character
  return '\'' + std::string(name.substr(0, cut)) + "...'";
}

Result<std::int64_t> read_prefix(std::span<const std::byte> prefix, std::int64_t file_bytes, std::string_view where) {
  if (file_bytes < kPrefixBytes || static_cast<std::int64_t>(prefix.size()) < kPrefixBytes)
    return broken(where, "has " + std::to_string(file_bytes) +
                             " bytes; a safetensors file begins with 8 that say how long its header is");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kPrefixBytes); ++i)
    length |= std::to_integer<std::uint64_t>(prefix[i]) << (8 * i);
  if (length > static_cast<std::uint64_t>(file_bytes - kPrefixBytes)) {
    const auto begins = [&](std::string_view with) {
      return std::memcmp(prefix.data(), with.data(), with.size()) == 0;
    };
    if (begins("PK\x03\x04") || begins("\x80\x02"))
      return broken(
          where, "is a pickle of PyTorch, not a safetensors file",
          "save_pretrained(folder, safe_serialization=True) in transformers, or safetensors.torch.save_file()");
    return broken(where, "says that its header has " + std::to_string(length) + " bytes; " +
                             std::to_string(file_bytes - kPrefixBytes) +
                             " follow: it is truncated, or no safetensors file");
  }
  if (length > static_cast<std::uint64_t>(kMostHeaderBytes))
    return broken(where,
                  "says that its header has " + std::to_string(length) + " bytes, more than the format's " +
                      std::to_string(kMostHeaderBytes),
                  "a file written by safetensors");
  return static_cast<std::int64_t>(length);
}

std::array<std::byte, kPrefixBytes> write_prefix(std::int64_t header_bytes) {
  std::array<std::byte, kPrefixBytes> prefix{};
  for (std::size_t i = 0; i < prefix.size(); ++i)
    prefix[i] = static_cast<std::byte>(static_cast<std::uint64_t>(header_bytes) >> (8 * i) & 0xFFU);
  return prefix;
}

Result<std::vector<Tensor>> parse_header(std::string_view header, std::int64_t data_bytes, std::string_view where) {
  HeaderListener listener;
  if (Result<void> read = read_json(header, std::string(where) + ", header", listener); !read) return read.error();
  if (!listener.fault.empty()) return broken(where, listener.fault);
  std::vector<Tensor> tensors = std::move(listener.tensors);
  for (Tensor& t : tensors)
    if (const std::optional<std::string> fault = fault_of(t, data_bytes)) return broken(where, *fault);
  std::ranges::stable_sort(
      tensors, [](const Tensor& a, const Tensor& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::int64_t at = 0;
  std::string before = "the header";
  for (const Tensor& t : tensors) {
    if (t.begin < at)
      return broken(where, "tensor " + in_quotes(t.name) + " begins at byte " + std::to_string(t.begin) + ", inside " +
                               before + ", which ends at " + std::to_string(at));
    if (t.begin > at)
      return broken(where,
                    "a hole of " + std::to_string(t.begin - at) + " bytes is before tensor " + in_quotes(t.name));
    at = t.end;
    before = "tensor " + in_quotes(t.name);
  }
  if (at != data_bytes)
    return broken(where, std::to_string(data_bytes - at) + " bytes behind " + before + " belong to no tensor");
  return tensors;
}

std::string write_header(std::span<const Tensor> tensors) {
  std::string text = R"({"__metadata__":{"format":"pt"})";  // transformers refuses files without it
  for (const Tensor& t : tensors) {
    text += ',' + nlohmann::json(t.name).dump() + R"(:{"dtype":")" + t.dtype + R"(","shape":[)";
    for (std::size_t i = 0; i < t.shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(t.shape[i]);
    text += R"(],"data_offsets":[)" + std::to_string(t.begin) + ',' + std::to_string(t.end) + "]}";
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

Result<std::vector<IndexEntry>> parse_index(std::string_view text, std::string_view where) {
  IndexListener listener;
  if (Result<void> read = read_json(text, where, listener); !read) return read.error();
  if (!listener.fault.empty()) return broken(where, listener.fault);
  if (!listener.has_map || listener.entries.empty())
    return broken(where, "has no \"weight_map\" of tensors and their files", "the index that save_pretrained() writes");
  return std::move(listener.entries);
}

}  // namespace shard::safetensors
