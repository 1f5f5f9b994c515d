// Seeded random data: tokens, or mlp samples with targets.
#include "executor/cpu/kernels/init.h"
#include "executor/data/sources.h"

namespace shard::data {
namespace {

class RandomTokens final : public DataSource {
 public:
  RandomTokens(const model::Model& model, const BatchShape& shape) : vocabulary_(model.vocabulary), shape_(shape) {}

  Result<void> fill(cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
                    std::span<std::byte> target) override {
    // Each sequence is sequence + 1 tokens of the stream; the target is the input moved by one.
    const RandomKey key{shape_.seed, RandomStream::tokens, static_cast<std::uint64_t>(number)};
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      const std::int64_t first = b * (shape_.sequence + 1);
      const std::int64_t at = b * shape_.sequence * 4;
      const auto bound = static_cast<std::int32_t>(vocabulary_);
      cpu::random_integers(pool, key, first, shape_.sequence, bound,
                           reinterpret_cast<std::int32_t*>(input.data() + at));
      cpu::random_integers(pool, key, first + 1, shape_.sequence, bound,
                           reinterpret_cast<std::int32_t*>(target.data() + at));
    }
    return {};
  }
  [[nodiscard]] std::string describe() const override { return "random tokens, seed " + std::to_string(shape_.seed); }

 private:
  std::int64_t vocabulary_;
  BatchShape shape_;
};

class RandomSamples final : public DataSource {
 public:
  RandomSamples(const model::Model& model, const BatchShape& shape)
      : inputs_(model.sizes.front()), outputs_(model.sizes.back()), classes_(model.cross_entropy), shape_(shape) {}

  Result<void> fill(cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
                    std::span<std::byte> target) override {
    const auto index = static_cast<std::uint64_t>(number);
    const RandomKey samples{shape_.seed, RandomStream::samples, index};
    const RandomKey targets{shape_.seed, RandomStream::targets, index};
    cpu::random_normal(pool, samples, 0, shape_.batch * inputs_, 1.0F, reinterpret_cast<float*>(input.data()));
    if (classes_)
      cpu::random_integers(pool, targets, 0, shape_.batch, static_cast<std::int32_t>(outputs_),
                           reinterpret_cast<std::int32_t*>(target.data()));
    else
      cpu::random_normal(pool, targets, 0, shape_.batch * outputs_, 1.0F, reinterpret_cast<float*>(target.data()));
    return {};
  }
  [[nodiscard]] std::string describe() const override { return "random samples, seed " + std::to_string(shape_.seed); }

 private:
  std::int64_t inputs_;
  std::int64_t outputs_;
  bool classes_;
  BatchShape shape_;
};

}  // namespace

std::unique_ptr<DataSource> make_random(const model::Model& model, const BatchShape& shape) {
  if (model.family == model::Family::mlp) return std::make_unique<RandomSamples>(model, shape);
  return std::make_unique<RandomTokens>(model, shape);
}

}  // namespace shard::data
