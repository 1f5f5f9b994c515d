// Sequences of one file of tokens or of several: drawn, in turn, or in an order that is drawn for each epoch.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "executor/cpu/kernels/init.h"
#include "executor/data/permutation.h"
#include "executor/data/sources.h"
#include "executor/data/token_file.h"

namespace shard::data {
namespace {

/// A sequence of S tokens and its targets are S + 1 of one file, from a start on. Drawn: any start. Else windows, of
/// which each begins where the one before ends.
class Tokens final : public DataSource {
 public:
  Tokens(std::string name, std::vector<TokenFile> files, std::int64_t vocabulary, const BatchShape& shape)
      : name_(std::move(name)),
        files_(std::move(files)),
        vocabulary_(vocabulary),
        shape_(shape),
        tokens_(static_cast<std::size_t>(shape.sequence + 1)) {
    for (const TokenFile& file : files_) {
      const std::int64_t starts = file.count() - shape.sequence;
      places_ += shape.order == DataOrder::random ? starts : (starts + shape.sequence - 1) / shape.sequence;
      ends_.push_back(places_);
      count_ += file.count();
    }
  }

  Result<void> fill(cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
                    std::span<std::byte> target) override {
    auto* in = reinterpret_cast<std::int32_t*>(input.data());
    auto* out = reinterpret_cast<std::int32_t*>(target.data());
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      if (Result<void> r = read(place(pool, number, b)); !r) return r;
      for (std::int64_t s = 0; s < shape_.sequence; ++s) {
        in[b * shape_.sequence + s] = static_cast<std::int32_t>(tokens_[static_cast<std::size_t>(s)]);
        out[b * shape_.sequence + s] = static_cast<std::int32_t>(tokens_[static_cast<std::size_t>(s) + 1]);
      }
    }
    return {};
  }
  [[nodiscard]] std::string describe() const override {
    const std::string all = name_ + ", " + std::to_string(count_) + " tokens";
    if (shape_.order == DataOrder::random) return all;
    return all + ", " + std::to_string(places_) + " windows " + std::string(to_string(shape_.order));
  }

 private:
  /// Which start, or which window, sequence b of the micro-batch is: a function of the seed and of the sequence's number
  /// in the run.
  [[nodiscard]] std::int64_t place(cpu::ThreadPool& pool, std::int64_t number, std::int64_t b) const {
    if (shape_.order == DataOrder::random) {
      const RandomKey key{shape_.seed, RandomStream::tokens, static_cast<std::uint64_t>(number)};
      if (places_ > INT32_MAX) return far_place(key, b);
      std::int32_t start = 0;
      cpu::random_integers(pool, key, b, 1, static_cast<std::int32_t>(places_), &start);
      return start;
    }
    const std::int64_t sequence = number * shape_.batch + b;
    if (shape_.order == DataOrder::sequential) return sequence % places_;
    return Permutation(shape_.seed, static_cast<std::uint64_t>(sequence / places_), places_)(sequence % places_);
  }
  /// Beyond what one word numbers: two of them, by the remainder.
  [[nodiscard]] std::int64_t far_place(const RandomKey& key, std::int64_t b) const {
    PhiloxWordsOf<1> words;
    philox(key, static_cast<std::uint32_t>(b), words);
    const std::uint64_t both = std::uint64_t{words.w[0][0]} << 32 | words.w[1][0];
    return static_cast<std::int64_t>(both % static_cast<std::uint64_t>(places_));
  }

  [[nodiscard]] Result<void> read(std::int64_t place) {
    const auto f = static_cast<std::size_t>(std::ranges::upper_bound(ends_, place) - ends_.begin());
    const std::int64_t in_file = place - (f == 0 ? 0 : ends_[f - 1]);
    const std::int64_t start = shape_.order == DataOrder::random ? in_file : in_file * shape_.sequence;
    if (Result<void> r = files_[f].read(start, tokens_); !r) return r;
    // What was written into the file since it was checked must not become an index beyond the embedding.
    if (std::ranges::all_of(tokens_, [&](std::int64_t t) { return t >= 0 && t < vocabulary_; })) return {};
    return Error{.code = Errc::malformed,
                 .what = "the data file was changed while it was being read: a token is beyond the vocabulary of " +
                         std::to_string(vocabulary_),
                 .where = files_[f].path().string(),
                 .help = "a copy that nobody writes to"};
  }

  std::string name_;
  std::vector<TokenFile> files_;
  std::vector<std::int64_t> ends_{};  ///< by file: places of it and of those before
  std::int64_t places_ = 0;
  std::int64_t count_ = 0;
  std::int64_t vocabulary_;
  BatchShape shape_;
  std::vector<std::int64_t> tokens_;  ///< of one sequence and its last target
};

/// "text:FILE", or of several files how many and which.
std::string name_of(const std::vector<DataFile>& files, const BatchShape& shape) {
  const auto named = [](const DataFile& f) { return (f.text ? "text:" : "") + f.path.string(); };
  std::string name = named(files.front());
  if (files.size() > 1)
    name = std::to_string(files.size()) + " files, " + files.front().path.filename().string() + " to " +
           files.back().path.filename().string();
  const auto percent = [](double share) { return std::to_string(static_cast<int>(100 * share + 0.5)) + " %"; };
  if (shape.begin > 0) name += " behind its first " + percent(shape.begin);
  if (shape.end < 1) name += ", its first " + percent(shape.end);
  return name;
}

}  // namespace

Result<std::unique_ptr<DataSource>> open_tokens(const std::vector<DataFile>& files, const model::Model& model,
                                                const BatchShape& shape) {
  std::vector<TokenFile> open;
  for (const DataFile& file : files) {
    Result<TokenFile> one = file.text ? TokenFile::open_text(file.path) : TokenFile::open_tokens(file.path);
    if (!one) return one.error();
    const std::int64_t all = one->count();
    one->keep(shape.begin, shape.end);
    const std::int64_t count = one->count();
    if (count <= shape.sequence && count < all)
      return Error{.code = Errc::contradiction,
                   .what = "of " + std::to_string(all) + " tokens this part holds " + std::to_string(count) +
                           ", and one sequence and its target need " + std::to_string(shape.sequence + 1),
                   .where = file.path.string(),
                   .help = "a longer file, or another share of it"};
    if (count <= shape.sequence)
      return Error{.code = Errc::malformed,
                   .what = "the file holds " + std::to_string(count) +
                           " tokens, one sequence and its target need " + std::to_string(shape.sequence + 1),
                   .where = file.path.string(),
                   .help = count > 1 ? "--sequence " + std::to_string(count - 1) : "a longer file"};
    if (Result<void> r = one->check_all(model); !r) return r.error();
    open.push_back(std::move(*one));
  }
  return std::unique_ptr<DataSource>(
      std::make_unique<Tokens>(name_of(files, shape), std::move(open), model.vocabulary, shape));
}

}  // namespace shard::data
