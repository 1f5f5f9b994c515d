// Works the batch numbers out.
#include "sim/foreign/batches.h"

#include <algorithm>
#include <limits>

namespace shard::foreign {
namespace {

/// Larger numbers are nobody's batch, and their products stay whole.
constexpr std::int64_t kMostSequences = std::int64_t{1} << 40;
constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;

/// One number: where it stands and what it says.
struct Number {
  Leaf leaf{.pointer = "", .value = nullptr};
  std::optional<std::int64_t> value{};  ///< none: absent, null or "auto"
  [[nodiscard]] bool is_there() const { return leaf.value != nullptr; }
  [[nodiscard]] bool is_chosen() const { return is_there() && is_auto(*leaf.value); }
};

Result<Number> read(Reading& reading, const std::string& pointer) {
  Number number;
  const Value* const value = pointer.empty() ? nullptr : reading.root().at(pointer);
  if (value == nullptr) return number;
  number.leaf = {pointer, value};
  if (value->kind == Kind::null) return reading.leave(pointer, "not set"), Number{};
  if (is_auto(*value)) return number;
  number.value = whole_in(*value);
  if (!number.value) return reading.wrong_kind(number.leaf, "a whole number");
  if (*number.value < 1) return reading.refused(number.leaf, "it is at least 1", "1");
  if (*number.value > kMostSequences) return reading.refused(number.leaf, "nobody has as many", "a smaller number");
  return number;
}

/// What is in force of an option, where that is a plain number.
std::optional<std::int64_t> option_number(const Reading& reading, std::string_view option) {
  const std::optional<std::string> text = reading.in_force(option);
  if (!text) return std::nullopt;
  return whole_in(text_value(*text, 0));
}

std::string product_text(std::int64_t micro, std::int64_t steps, std::int64_t ranks) {
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  return text(micro) + " x " + text(steps) + " micro-steps x " + text(ranks) + " ranks";
}

struct Batches {
  Number micro, steps, whole;
};

Result<void> check_alone(const Reading& reading, const Batches& b) {
  if (!b.whole.value || !b.micro.value) return {};
  const std::int64_t steps = b.steps.value.value_or(1);
  const std::int64_t most = *b.whole.value / *b.micro.value;
  if (steps <= most && *b.whole.value % *b.micro.value == 0 && most % steps == 0) return {};
  std::string why = "no multiple of " + b.micro.leaf.pointer + " " + std::to_string(*b.micro.value);
  if (b.steps.value) why += " x " + b.steps.leaf.pointer + " " + std::to_string(steps);
  return reading.refused(b.whole.leaf, why + ", at whatever number of ranks", "leave one of the three out");
}

}  // namespace

Result<void> settle_batches(Reading& reading, const BatchKeys& keys) {
  Result<Number> micro = read(reading, keys.micro);
  if (!micro) return micro.error();
  Result<Number> steps = read(reading, keys.accumulation);
  if (!steps) return steps.error();
  Result<Number> whole = read(reading, keys.whole);
  if (!whole) return whole.error();
  const Batches b{*micro, *steps, *whole};
  if (Result<void> ok = check_alone(reading, b); !ok) return ok;

  const std::int64_t tensor =
      std::clamp<std::int64_t>(option_number(reading, "tensor-parallel").value_or(1), 1, kMostRanks);
  std::optional<std::int64_t> ranks = option_number(reading, "world-size");
  if (!ranks && b.whole.value && b.micro.value && b.steps.value && !reading.given().option("micro-batch")) {
    const std::int64_t replicas = *b.whole.value / (*b.micro.value * *b.steps.value);
    if (replicas <= kMostRanks / tensor)
      reading.set(b.whole.leaf, "world-size", std::to_string(*(ranks = replicas * tensor)));
  }
  const std::int64_t replicas = std::clamp<std::int64_t>(ranks.value_or(1) / tensor, 1, kMostRanks);

  if (b.micro.value)
    reading.set(b.micro.leaf, "micro-batch", std::to_string(*b.micro.value));
  else if (b.micro.is_chosen())
    reading.set(b.micro.leaf, "micro-batch", std::to_string(keys.assumed_micro), Certainty::assumed);
  std::int64_t one = option_number(reading, "micro-batch").value_or(1);
  if (b.whole.value && !b.micro.is_there() && !reading.given().option("micro-batch")) {
    // The framework works the micro-batch out of the other two.
    const std::int64_t share = *b.whole.value / (replicas * b.steps.value.value_or(1));
    if (share >= 1 && share * replicas * b.steps.value.value_or(1) == *b.whole.value)
      reading.set(b.whole.leaf, "micro-batch", std::to_string(one = share));
  }
  one = std::clamp<std::int64_t>(one, 1, kMostSequences);
  const std::int64_t round = one * replicas;
  if (b.steps.is_chosen()) reading.understand(b.steps.leaf.pointer);
  if (b.whole.is_chosen()) reading.understand(b.whole.leaf.pointer);

  const std::optional<std::int64_t> fixed = option_number(reading, "global-batch");
  const bool all_from_file = b.micro.value && b.steps.value && !reading.given().option("micro-batch");
  const bool whole_fits =
      b.whole.value && *b.whole.value % round == 0 && !(all_from_file && *b.whole.value != round * *b.steps.value);
  const std::int64_t taken = fixed ? *fixed : whole_fits ? *b.whole.value : round * b.steps.value.value_or(1);
  if (b.whole.value) {
    if (taken == *b.whole.value)
      reading.set(b.whole.leaf, "global-batch", std::to_string(taken));
    else if (fixed)
      reading.leave(b.whole.leaf.pointer, "overridden by --global-batch " + std::to_string(taken));
    else
      reading.leave(b.whole.leaf.pointer,
                    "disagrees with " + product_text(one, b.steps.value.value_or(1), replicas) + ", which counts");
  }
  if (!b.steps.value) return {};
  if (taken != round * *b.steps.value) {
    reading.leave(b.steps.leaf.pointer, "disagrees: " + product_text(one, *b.steps.value, replicas) +
                                            " is not the batch of " + std::to_string(taken) + " that counts");
  } else if (whole_fits || *b.steps.value == 1 || fixed) {
    reading.understand(b.steps.leaf.pointer);
  } else {
    reading.set(b.steps.leaf, "global-batch", std::to_string(taken));
  }
  return {};
}

}  // namespace shard::foreign
