// The last archive that was opened for an item stays open; of those that came open, a file rests once others are read.
#include "executor/state/torch/sources.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "executor/state/safetensors.h"

namespace shard::torch {

namespace {

constexpr std::size_t kMostOpen = 64;

}  // namespace

struct Sources::State {
  struct Item {
    std::filesystem::path file;
    std::int64_t offset = 0, length = 0;
    std::vector<std::int64_t> shape;
    std::string what;
  };
  struct Source {
    std::shared_ptr<Archive> archive;  ///< null: the item's, when it is opened
    Tensor tensor;
    std::optional<Item> item;
  };
  std::vector<Source> sources;
  std::deque<Archive*> in_use;  ///< of archives that came open, the last read last
  std::int32_t opened = -1;     ///< the item whose archive is open
  std::shared_ptr<Archive> item_archive;
  Tensor item_tensor;

  void used(Archive* archive) {
    if (!in_use.empty() && in_use.back() == archive) return;
    std::erase(in_use, archive);
    in_use.push_back(archive);
    if (in_use.size() <= kMostOpen) return;
    in_use.front()->rest();
    in_use.pop_front();
  }

  Result<std::shared_ptr<Archive>> open_item(const Item& item) {
    return Archive::open(item.file, item.offset, item.length);
  }

  Result<void> open_tensor(std::int32_t number) {
    if (opened == number) return {};
    const Item& item = *sources[static_cast<std::size_t>(number)].item;
    opened = -1;
    Result<std::shared_ptr<Archive>> archive = open_item(item);
    if (!archive) return archive.error();
    Result<std::optional<Tensor>> tensor = tensor_of(**archive, (*archive)->root(), item.what);
    if (!tensor) return tensor.error();
    if (!*tensor || (*tensor)->shape != item.shape)
      return Error{.code = Errc::malformed,
                   .what = item.what + " is " +
                           (*tensor ? safetensors::shape_text((*tensor)->shape)
                                    : kind_text((*archive)->pickle(), (*archive)->root())) +
                           " there; the checkpoint says " + safetensors::shape_text(item.shape),
                   .where = (*archive)->where(),
                   .help = "files of one checkpoint"};
    if (!is_read_as_f32((*tensor)->dtype))
      return Error{.code = Errc::contradiction,
                   .what = item.what + " is " + (*tensor)->dtype + "; F32, F16 and BF16 are read",
                   .where = (*archive)->where(),
                   .help = "a checkpoint of one of these"};
    item_archive = std::move(*archive);
    item_tensor = std::move(**tensor);
    opened = number;
    return {};
  }
};

Sources::Sources() : state_(std::make_unique<State>()) {}
Sources::~Sources() = default;
Sources::Sources(Sources&&) noexcept = default;
Sources& Sources::operator=(Sources&&) noexcept = default;

std::int32_t Sources::add(std::shared_ptr<Archive> archive, Tensor tensor) {
  state_->used(archive.get());
  state_->sources.push_back({.archive = std::move(archive), .tensor = std::move(tensor), .item = std::nullopt});
  return static_cast<std::int32_t>(state_->sources.size() - 1);
}

std::int32_t Sources::add(const std::filesystem::path& file, std::int64_t offset, std::int64_t length,
                          std::vector<std::int64_t> shape, std::string what) {
  state_->sources.push_back(
      {.archive = nullptr,
       .tensor = {},
       .item = State::Item{
           .file = file, .offset = offset, .length = length, .shape = std::move(shape), .what = std::move(what)}});
  return static_cast<std::int32_t>(state_->sources.size() - 1);
}

Result<void> Sources::read(std::int32_t source, std::int64_t first, std::span<float> values) {
  State::Source& s = state_->sources[static_cast<std::size_t>(source)];
  if (s.archive == nullptr) {
    if (Result<void> opened = state_->open_tensor(source); !opened) return opened;
    return read_elements(*state_->item_archive, state_->item_tensor, first, values);
  }
  state_->used(s.archive.get());
  return read_elements(*s.archive, s.tensor, first, values);
}

Result<std::int64_t> Sources::count(std::int32_t source) {
  const State::Source& s = state_->sources[static_cast<std::size_t>(source)];
  Result<std::shared_ptr<Archive>> archive = state_->open_item(*s.item);
  if (!archive) return archive.error();
  const std::optional<std::int64_t> n = count_of(**archive, (*archive)->root());
  if (n) return *n;
  return Error{
      .code = Errc::malformed,
      .what = s.item->what + " is " + kind_text((*archive)->pickle(), (*archive)->root()) + ", no whole number",
      .where = (*archive)->where(),
      .help = "files of one checkpoint"};
}

}  // namespace shard::torch
