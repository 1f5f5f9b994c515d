// Makes lifetimes from a seed.
#include "tests/memory/random_lifetimes.h"

#include <cmath>
#include <random>
#include <utility>

namespace shard {

Lifetimes random_lifetimes(std::uint32_t seed, int count, std::size_t live_limit, double skew) {
  std::mt19937 random(seed);
  Lifetimes result;
  std::vector<std::int32_t> live, dead;
  for (int i = 0; i < count; ++i) {
    std::int32_t next = 0;
    if (!dead.empty() && random() % 4 == 0) {
      const std::size_t pick = random() % dead.size();
      next = std::exchange(dead[pick], dead.back());
      dead.pop_back();
    } else {
      const double uniform = static_cast<double>(random() % 100000 + 1) / 100001.0;
      next = result.item(static_cast<std::int64_t>(std::pow(uniform, -skew) * 500));
    }
    result.acquire(next);
    live.push_back(next);
    while (live.size() > live_limit) {
      const std::size_t pick = random() % live.size();
      result.release(live[pick]);
      dead.push_back(std::exchange(live[pick], live.back()));
      live.pop_back();
    }
  }
  return result;
}

Lifetimes transformer(int layers, int micro_batches, bool gather, bool recompute, std::uint32_t seed) {
  std::mt19937 random(seed);
  Lifetimes result;
  const std::int64_t token = 256 * 768 * 4, unit = 12 * 768 * 768 * 4, scores = 12 * 256 * 256 * 4;
  const std::vector<std::int64_t> saved_sizes = {token, 2048, 3 * token, token,     12288,
                                                 token, 2048, 4 * token, 4 * token, token};
  struct Layer {
    std::vector<std::int32_t> saved, again, temporary, backward;
    std::int32_t output, unit, gradient, shard;
  };
  std::vector<Layer> all(static_cast<std::size_t>(layers));
  const std::int32_t input = result.item(token), logits = result.item(256 * 50257 * 4);
  const std::int32_t logits_gradient = result.item(256 * 50257 * 4), loss = result.item(4);
  for (Layer& layer : all) {
    for (const std::int64_t size : saved_sizes) {
      layer.saved.push_back(result.item(size));
      if (recompute) layer.again.push_back(result.item(size));
      layer.backward.push_back(result.item(random() % 5 == 0 ? scores : size));
      layer.temporary.push_back(result.item(static_cast<std::int64_t>(random() % 8 + 1) * token / 2));
    }
    layer.output = result.item(token);
    layer.unit = result.item(unit);
    layer.gradient = result.item(unit);
    layer.shard = result.item(unit / 4);
  }
  for (int step = 0; step < 2; ++step) {
    for (int micro = 0; micro < micro_batches; ++micro) {
      result.acquire(input);
      for (const Layer& layer : all) {
        if (gather) result.acquire(layer.unit);
        for (std::size_t k = 0; k < saved_sizes.size(); ++k) {
          result.acquire(layer.temporary[k]);
          result.acquire(layer.saved[k]);
          if (k > 0) result.release(layer.temporary[k - 1]);
        }
        result.acquire(layer.output);
        result.release(layer.temporary.back());
        if (recompute) {
          for (const std::int32_t item : layer.saved) result.release(item);
        }
        if (gather) result.release(layer.unit);
      }
      for (const std::int32_t item : {logits, loss, logits_gradient}) result.acquire(item);
      result.release(logits);
      std::int32_t flowing = logits_gradient;
      for (auto layer = all.rbegin(); layer != all.rend(); ++layer) {
        if (gather) result.acquire(layer->unit);
        const std::vector<std::int32_t>& needed = recompute ? layer->again : layer->saved;
        if (recompute) {
          for (const std::int32_t item : needed) result.acquire(item);
        }
        result.acquire(layer->gradient);
        for (std::size_t k = 0; k < needed.size(); ++k) {
          result.acquire(layer->backward[k]);
          result.release(std::exchange(flowing, layer->backward[k]));
          result.release(needed[needed.size() - 1 - k]);
        }
        result.release(layer->output);
        if (gather) result.release(layer->unit);
        if (micro == 0) result.acquire(layer->shard);
        result.release(layer->gradient);
      }
      for (const std::int32_t item : {flowing, input, loss}) result.release(item);
    }
    for (const Layer& layer : all) result.release(layer.shard);
  }
  return result;
}

}  // namespace shard
