// Words, colons and brackets, as c10 splits them.
#include "sim/like/pytorch/allocator_conf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace shard {
namespace {

constexpr std::int64_t kMebi = 1 << 20;

/// Of what concerns no bytes on the device.
constexpr std::array kNoBytes{"pinned_use_cuda_host_register", "pinned_num_register_threads",
                              "pinned_use_background_threads", "pinned_reserve_segment_size_mb",
                              "release_lock_on_cudamalloc",    "graph_capture_record_stream_reuse"};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { split(); }

  Result<AllocatorConf> read() {
    while (at_ < words_.size()) {
      if (Result<void> ok = setting(); !ok) return ok.error();
      if (at_ < words_.size() && !take(",")) return refused("a comma is wanted before '" + words_[at_] + "'");
    }
    if (conf_.options.collect_from > 0)
      conf_.without_limit =
          "garbage_collection_threshold: PyTorch collects only after torch.cuda.set_per_process_memory_fraction "
          "(--memory-fraction)";
    return std::move(conf_);
  }

 private:
  void split() {
    std::string word;
    const auto flush = [&] {
      if (!word.empty()) words_.push_back(std::exchange(word, {}));
    };
    for (const char c : text_) {
      if (c == ',' || c == ':' || c == '[' || c == ']') {
        flush();
        words_.emplace_back(1, c);
      } else if (c != ' ') {
        word += c;
      }
    }
    flush();
  }

  bool take(std::string_view word) {
    if (at_ >= words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  [[nodiscard]] Error refused(std::string why) const {
    return {Errc::usage, std::move(why), "allocator settings '" + std::string(text_) + "'",
            "as PYTORCH_CUDA_ALLOC_CONF has them: max_split_size_mb:128,expandable_segments:True"};
  }

  /// The value behind `key` and its colon.
  Result<std::string> value(const std::string& key) {
    if (!take(":") || at_ >= words_.size()) return refused("'" + key + "' has no value");
    return words_[at_++];
  }

  Result<std::int64_t> number(const std::string& key, std::int64_t least) {
    const Result<std::string> word = value(key);
    if (!word) return word.error();
    std::int64_t n = 0;
    const char* const end = word->data() + word->size();
    const auto parsed = std::from_chars(word->data(), end, n);
    if (parsed.ec != std::errc{} || parsed.ptr != end || n < least)
      return refused("'" + key + ":" + *word + "': a whole number of at least " + std::to_string(least) + " is wanted");
    return n;
  }

  /// MiB as bytes, at least those of a large segment; what is beyond any device counts as no limit.
  Result<Bytes> mebibytes(const std::string& key) {
    const Result<std::int64_t> n = number(key, conf_.options.large_segment.count() / kMebi);
    if (!n) return n.error();
    return Bytes{std::min(*n, std::numeric_limits<std::int64_t>::max() / kMebi / 4) * kMebi};
  }

  Result<bool> truth(const std::string& key) {
    const Result<std::string> word = value(key);
    if (!word) return word.error();
    if (*word == "True") return true;
    if (*word == "False") return false;
    return refused("'" + key + ":" + *word + "': True or False is wanted");
  }

  Result<void> setting() {
    const std::string key = words_[at_++];
    CachingAllocatorOptions& o = conf_.options;
    if (key == "max_split_size_mb") return keep(mebibytes(key), o.max_split);
    if (key == "max_non_split_rounding_mb") return keep(mebibytes(key), o.max_non_split_rounding);
    if (key == "roundup_power2_divisions") return divisions(key);
    if (key == "garbage_collection_threshold") return threshold(key);
    if (key == "expandable_segments") return keep(truth(key), o.expandable);
    if (key == "backend") return backend(key);
    if (std::find(kNoBytes.begin(), kNoBytes.end(), key) == kNoBytes.end())
      return refused("'" + key + "' is no setting of PyTorch's allocator");
    const Result<std::string> ignored = value(key);
    if (!ignored) return ignored.error();
    conf_.without_effect.push_back(key + ": concerns no bytes on the device");
    return {};
  }

  template <typename From, typename To>
  static Result<void> keep(const Result<From>& from, To& to) {
    if (!from) return from.error();
    to = *from;
    return {};
  }

  Result<void> backend(const std::string& key) {
    const Result<std::string> word = value(key);
    if (!word) return word.error();
    if (*word == "native") return {};
    if (*word != "cudaMallocAsync") return refused("'backend:" + *word + "': native is wanted");
    return Error{Errc::contradiction, "backend:cudaMallocAsync is the driver's allocator, which is not modelled",
                 "allocator settings '" + std::string(text_) + "'", "backend:native, PyTorch's default"};
  }

  Result<void> threshold(const std::string& key) {
    const Result<std::string> word = value(key);
    if (!word) return word.error();
    double share = 0;
    const char* const end = word->data() + word->size();
    const auto parsed = std::from_chars(word->data(), end, share);
    if (parsed.ec != std::errc{} || parsed.ptr != end || !(share > 0 && share < 1))
      return refused("'" + key + ":" + *word + "': a share between 0 and 1 is wanted");
    conf_.options.collect_from = share;
    return {};
  }

  Result<std::int64_t> power_of_two(const std::string& key, std::int64_t least) {
    const Result<std::int64_t> n = number(key, least);
    if (n && *n > 0 && !std::has_single_bit(static_cast<std::uint64_t>(*n)))
      return refused("'" + key + ":" + std::to_string(*n) + "': a power of two is wanted");
    return n;
  }

  /// [UP_TO_MIB:DIVISIONS, ..., >:DIVISIONS]: a number is of the power of two that begins there; what is below the
  /// first is divided as the first is; '>' is of all above the last.
  Result<void> divisions(const std::string& key) {
    auto& all = conf_.options.power2_divisions;
    if (at_ + 1 >= words_.size() || words_[at_] != ":" || words_[at_ + 1] != "[") {
      const Result<std::int64_t> n = power_of_two(key, 1);
      if (!n) return n.error();
      all.fill(*n);
      return {};
    }
    at_ += 2;
    std::size_t next = 0;
    bool first = true;
    while (at_ < words_.size() && !take("]")) {
      const std::string from = words_[at_++];
      const Result<std::int64_t> n = power_of_two(from, 0);
      if (!n) return n.error();
      if (from == ">") {
        std::fill(all.begin() + static_cast<std::ptrdiff_t>(next), all.end(), *n);
      } else {
        std::uint64_t mebi = 0;
        const auto parsed = std::from_chars(from.data(), from.data() + from.size(), mebi);
        if (parsed.ec != std::errc{} || parsed.ptr != from.data() + from.size() || !std::has_single_bit(mebi))
          return refused("'" + from + "': MiB as a power of two, or '>', are wanted in " + key);
        const std::size_t last =
            std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(mebi)) - 1, all.size() - 1);
        if (std::exchange(first, false)) std::fill(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(last), *n);
        all[last] = *n;
        next = last + 1;
      }
      if (at_ < words_.size() && words_[at_] != "]" && !take(",")) return refused("a comma is wanted in " + key);
    }
    return {};
  }

  std::string_view text_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  AllocatorConf conf_;
};

}  // namespace

Result<AllocatorConf> read_allocator_conf(std::string_view text) {
  return Reader(text).read();
}

}  // namespace shard
