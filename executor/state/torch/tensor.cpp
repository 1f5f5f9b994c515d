// Sources: torch/_utils.py, torch/_tensor.py and torch/storage.py of PyTorch.
#include "executor/state/torch/tensor.h"

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "executor/state/safetensors.h"
#include "executor/state/stored_floats.h"

namespace shard::torch {
namespace {

struct TypeName {
  std::string_view storage;  ///< torch's class of typed storages
  std::string_view dtype;    ///< torch's type
  std::string_view word;     ///< safetensors'
};
constexpr std::array<TypeName, 9> kTypes{{{"torch.FloatStorage", "torch.float32", "F32"},
                                          {"torch.BFloat16Storage", "torch.bfloat16", "BF16"},
                                          {"torch.HalfStorage", "torch.float16", "F16"},
                                          {"torch.DoubleStorage", "torch.float64", "F64"},
                                          {"torch.LongStorage", "torch.int64", "I64"},
                                          {"torch.IntStorage", "torch.int32", "I32"},
                                          {"torch.ShortStorage", "torch.int16", "I16"},
                                          {"torch.ByteStorage", "torch.uint8", "U8"},
                                          {"torch.BoolStorage", "torch.bool", "BOOL"}}};
constexpr int kMostWrapped = 4;  ///< a parameter of a tensor of a type
constexpr std::size_t kMostDimensions = 64;

Error not_read(const Archive& archive, std::string_view what, const std::string& why) {
  return {.code = Errc::contradiction,
          .what = std::string(what) + " is " + why + ", which is not read: code would have to run",
          .where = archive.where(),
          .help = "safetensors.torch.save_file(model.state_dict(), FILE) where the library that wrote it is installed"};
}

Error damaged(const Archive& archive, std::string_view what, const std::string& why) {
  return {.code = Errc::malformed,
          .what = std::string(what) + ' ' + why,
          .where = archive.where(),
          .help = "the file as torch.save wrote it"};
}

/// Of the persistent identifier: key and type's word; empty where it is another.
struct StorageName {
  std::string key;
  std::string_view word;
};
std::optional<StorageName> storage_of(const Pickle& pickle, Value value) {
  if (value.kind() != Kind::reference) return std::nullopt;
  const std::span<const Value> id =
      pickle.items(value).size() == 1 ? pickle.items(pickle.items(value)[0]) : std::span<const Value>();
  if (id.size() < 5 || pickle.text(id[0]) != "storage") return std::nullopt;
  StorageName name{.key = std::string(pickle.text(id[2])), .word = {}};
  for (const TypeName& t : kTypes)
    if (pickle.name(id[1]) == t.storage) name.word = t.word;
  return name;
}

/// The arguments of the call that makes a plain tensor, out of what wraps it.
struct Rebuild {
  std::span<const Value> arguments;
  bool typed = false;  ///< of _rebuild_tensor_v3, which names the type
};
std::optional<Rebuild> rebuild_of(const Pickle& pickle, Value callable, Value arguments, int depth = 0) {
  const std::string_view name = pickle.name(callable);
  const std::span<const Value> a = pickle.items(arguments);
  if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor") return Rebuild{a, false};
  if (name == "torch._utils._rebuild_tensor_v3") return Rebuild{a, true};
  if (depth == kMostWrapped || a.empty()) return std::nullopt;
  if (name.starts_with("torch._utils._rebuild_parameter")) {
    const std::optional<Pickle::Made> data = pickle.made(a[0]);
    return data ? rebuild_of(pickle, data->callable, data->arguments, depth + 1) : std::nullopt;
  }
  // Of a function, a type, the function's arguments, and attributes.
  if (name == "torch._tensor._rebuild_from_type_v2" && a.size() >= 3 &&
      (pickle.name(a[1]) == "torch.Tensor" || pickle.name(a[1]) == "torch.nn.parameter.Parameter"))
    return rebuild_of(pickle, a[0], a[2], depth + 1);
  return std::nullopt;
}

/// Do all elements lie in the storage, and no more of them than it has (a view that repeats some is no weight)? Fills
/// in `elements` and `contiguous`.
bool fits(Tensor& t, std::int64_t storage_elements) {
  if (t.shape.size() != t.strides.size() || t.shape.size() > kMostDimensions || t.first < 0) return false;
  std::int64_t elements = 1, last = t.first, dense = 1;
  for (std::size_t d = t.shape.size(); d-- > 0;) {
    const std::int64_t n = t.shape[d], stride = t.strides[d];
    if (n < 0 || stride < 0 || n > kMostElements || stride > kMostElements) return false;
    if (n > 1 && stride != dense) t.contiguous = false;
    if (n > 0 && elements > kMostElements / n) return false;
    elements *= n;
    if (n > 1 && stride > (kMostElements - last) / (n - 1)) return false;
    last += n > 1 ? stride * (n - 1) : 0;
    dense = elements;
    if (last > kMostElements) return false;
  }
  t.elements = elements;
  return elements <= storage_elements && (elements == 0 || last < storage_elements);
}

}  // namespace

std::optional<Value> member(const Pickle& pickle, Value of, std::string_view name) {
  std::span<const Value> all = pairs(pickle, of);
  if (const auto made = pickle.made(of); made && all.empty()) {
    // Of a class with slots the state is (None, {...}).
    const std::span<const Value> both = pickle.items(made->state);
    all = made->state.kind() == Kind::list && both.size() == 2 ? pairs(pickle, both[1]) : pairs(pickle, made->state);
  }
  for (std::size_t i = all.size() / 2; i-- > 0;)
    if (pickle.text(all[2 * i]) == name) return all[2 * i + 1];
  return std::nullopt;
}

std::span<const Value> pairs(const Pickle& pickle, Value of) {
  if (of.kind() == Kind::dict) return pickle.items(of);
  const auto made = pickle.made(of);
  if (!made || pickle.name(made->callable) != "collections.OrderedDict") return {};
  return made->items.first(made->items.size() / 2 * 2);
}

std::span<const Value> list_items(const Pickle& pickle, Value of) {
  if (of.kind() == Kind::list) return pickle.items(of);
  const auto made = pickle.made(of);
  if (!made || pickle.name(made->callable) != "torch.Size") return {};
  const std::span<const Value> a = pickle.items(made->arguments);
  return a.size() == 1 && a[0].kind() == Kind::list ? pickle.items(a[0]) : std::span<const Value>();
}

std::optional<std::vector<std::int64_t>> sizes_of(const Pickle& pickle, Value of) {
  if (of.kind() != Kind::list && !pickle.made(of)) return std::nullopt;
  if (const auto made = pickle.made(of); made && pickle.name(made->callable) != "torch.Size") return std::nullopt;
  std::vector<std::int64_t> sizes;
  for (const Value each : list_items(pickle, of)) {
    const std::optional<std::int64_t> n = pickle.integer(each);
    if (!n || *n < 0 || *n > kMostElements || sizes.size() == kMostDimensions) return std::nullopt;
    sizes.push_back(*n);
  }
  return sizes;
}

std::string kind_text(const Pickle& pickle, Value value) {
  switch (value.kind()) {
    case Kind::none: return "None";
    case Kind::boolean: return "a truth value";
    case Kind::integer:
    case Kind::real: return "a number";
    case Kind::string: return "text";
    case Kind::list: return "a list";
    case Kind::dict: return "a dict";
    case Kind::global: return safetensors::in_quotes(pickle.name(value));
    case Kind::object: {
      const std::string_view name = pickle.name(pickle.made(value)->callable);
      return name.empty() ? "an object" : "an object of " + safetensors::in_quotes(name);
    }
    case Kind::reference: return "a storage";
    case Kind::inert: break;
  }
  return "an object";
}

Result<std::optional<Tensor>> tensor_of(Archive& archive, Value value, std::string_view what) {
  const Pickle& pickle = archive.pickle();
  const auto made = pickle.made(value);
  if (!made) return std::optional<Tensor>();
  const std::optional<Rebuild> rebuild = rebuild_of(pickle, made->callable, made->arguments);
  if (!rebuild) return not_read(archive, what, kind_text(pickle, value));
  const std::span<const Value> a = rebuild->arguments;
  const std::optional<StorageName> storage = a.size() < 4 ? std::nullopt : storage_of(pickle, a[0]);
  if (!storage) return damaged(archive, what, "is a tensor without a storage");
  Tensor tensor{.storage = storage->key, .dtype = std::string(storage->word), .shape = {}, .strides = {}};
  if (rebuild->typed)
    for (const TypeName& t : kTypes)
      if (a.size() > 6 && pickle.name(a[6]) == t.dtype) tensor.dtype = t.word;
  if (tensor.dtype.empty()) return not_read(archive, what, "a tensor of a type of its own");
  const auto shape = sizes_of(pickle, a[2]), strides = sizes_of(pickle, a[3]);
  const std::optional<std::int64_t> first = pickle.integer(a[1]);
  const std::int64_t bytes = archive.storage_bytes(tensor.storage);
  if (bytes < 0) return damaged(archive, what, "is of a storage that is not there");
  if (!shape || !strides || !first) return damaged(archive, what, "is a tensor of no shape");
  tensor.shape = *shape;
  tensor.strides = *strides;
  tensor.first = *first;
  if (!fits(tensor, bytes * 8 / safetensors::bits_of(tensor.dtype)))
    return damaged(archive, what, "is larger than its storage, which has " + std::to_string(bytes) + " bytes");
  return std::optional(std::move(tensor));
}

bool is_read_as_f32(std::string_view dtype) {
  return dtype == "F32" || dtype == "BF16" || dtype == "F16";
}

Result<void> read_elements(Archive& archive, const Tensor& t, std::int64_t first, std::span<float> values) {
  const std::int64_t size = safetensors::bits_of(t.dtype) / 8;
  const auto run = [&](std::int64_t element, std::span<float> into) {
    return read_floats(t.dtype, element, into, [&](std::int64_t byte, std::span<std::byte> bytes) {
      return archive.read(t.storage, t.first * size + byte, bytes);
    });
  };
  if (t.contiguous) return run(first, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t rest = first + static_cast<std::int64_t>(i), at = 0;
    for (std::size_t d = t.shape.size(); d-- > 0;) {
      at += rest % t.shape[d] * t.strides[d];
      rest /= t.shape[d];
    }
    if (Result<void> r = run(at, values.subspan(i, 1)); !r) return r;
  }
  return {};
}

std::optional<std::int64_t> count_of(Archive& archive, Value value) {
  const Pickle& pickle = archive.pickle();
  if (const auto n = pickle.integer(value)) return n;
  double number = 0;
  if (const auto real = pickle.real(value)) {
    number = *real;
  } else {
    const Result<std::optional<Tensor>> tensor = tensor_of(archive, value, "a count");
    if (!tensor || !*tensor || (*tensor)->elements != 1) return std::nullopt;
    const Tensor& t = **tensor;
    std::array<std::byte, 8> bytes{};
    const std::int64_t size = safetensors::bits_of(t.dtype) / 8;
    if (!archive.read(t.storage, t.first * size, std::span(bytes).first(static_cast<std::size_t>(size))))
      return std::nullopt;
    const auto as = [&]<class T>(T n) { return std::memcpy(&n, bytes.data(), sizeof n), n; };
    if (t.dtype == "I64") return as(std::int64_t{});
    if (t.dtype == "I32") return as(std::int32_t{});
    if (t.dtype != "F32" && t.dtype != "F64") return std::nullopt;
    number = t.dtype == "F32" ? static_cast<double>(as(float{})) : as(double{});
  }
  if (!(std::abs(number) < 1e15) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace shard::torch
