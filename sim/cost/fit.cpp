// Normal equations of every subset of four terms.
#include "sim/cost/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "sim/cost/measured_times.h"

namespace shard::cost {
namespace {

constexpr std::size_t kTerms = 4;
using Terms = std::array<double, kTerms>;

/// One equation: what the terms are multiplied with, and what it should come to, both over the measured time.
struct Row {
  Terms of{};
  double value = 1;
};

Row row_of(const OpSample& s) {
  return {.of = {1 / s.seconds, s.work.flops / s.seconds, s.work.weight_bytes / s.seconds, s.work.bytes / s.seconds}};
}

/// Solves the symmetric system of the terms in `subset` by elimination with pivots; nothing where it is singular.
std::optional<Terms> solve(std::array<Terms, kTerms> a, Terms b, unsigned subset) {
  for (std::size_t i = 0; i < kTerms; ++i)
    if ((subset >> i & 1U) == 0) {
      for (std::size_t j = 0; j < kTerms; ++j) a[i][j] = a[j][i] = 0;
      a[i][i] = 1;
      b[i] = 0;
    }
  constexpr double kSingular = 1e-12;  // columns are scaled to one
  for (std::size_t i = 0; i < kTerms; ++i) {
    std::size_t pivot = i;
    for (std::size_t j = i + 1; j < kTerms; ++j)
      if (std::abs(a[j][i]) > std::abs(a[pivot][i])) pivot = j;
    if (std::abs(a[pivot][i]) < kSingular) return std::nullopt;
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    for (std::size_t j = i + 1; j < kTerms; ++j) {
      const double times = a[j][i] / a[i][i];
      for (std::size_t k = i; k < kTerms; ++k) a[j][k] -= times * a[i][k];
      b[j] -= times * b[i];
    }
  }
  Terms x{};
  for (std::size_t i = kTerms; i-- > 0;) {
    double rest = b[i];
    for (std::size_t k = i + 1; k < kTerms; ++k) rest -= a[i][k] * x[k];
    x[i] = rest / a[i][i];
  }
  return x;
}

double error_of(std::span<const Row> rows, const Terms& x) {
  double error = 0;
  for (const Row& row : rows) {
    double off = -row.value;
    for (std::size_t i = 0; i < kTerms; ++i) off += row.of[i] * x[i];
    error += off * off;
  }
  return error;
}

/// The terms, none negative, that make the sum of squares least. Columns are scaled to their largest entry meanwhile.
Terms least_squares(std::vector<Row> rows) {
  Terms scale{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kTerms; ++i) scale[i] = std::max(scale[i], row.of[i]);
  for (Row& row : rows)
    for (std::size_t i = 0; i < kTerms; ++i) row.of[i] = scale[i] > 0 ? row.of[i] / scale[i] : 0;
  std::array<Terms, kTerms> a{};
  Terms b{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kTerms; ++i) {
      b[i] += row.of[i] * row.value;
      for (std::size_t j = 0; j < kTerms; ++j) a[i][j] += row.of[i] * row.of[j];
    }
  Terms best{};
  double least = error_of(rows, best);
  for (unsigned subset = 1; subset < 1U << kTerms; ++subset) {
    const std::optional<Terms> x = solve(a, b, subset);
    if (!x || std::ranges::any_of(*x, [](double v) { return v < 0; })) continue;
    if (const double error = error_of(rows, *x); error < least) least = error, best = *x;
  }
  for (std::size_t i = 0; i < kTerms; ++i) best[i] = scale[i] > 0 ? best[i] / scale[i] : 0;
  return best;
}

/// Medians of measured over law, by power of two of the bytes moved.
std::vector<cluster::Correction> corrections(const cluster::OpLaw& law, std::span<const OpSample> samples) {
  struct Bin {
    std::vector<double> moved;
    std::vector<double> off;
  };
  std::map<int, Bin> bins;
  for (const OpSample& s : samples) {
    const double plain = law_time(law, s.work).count();
    if (!(plain > 0)) continue;
    Bin& bin = bins[static_cast<int>(std::floor(std::log2(std::max(s.work.moved(), 1.0))))];
    bin.moved.push_back(s.work.moved());
    bin.off.push_back(s.seconds / plain);
  }
  std::vector<cluster::Correction> all;
  for (const auto& [power, bin] : bins) all.push_back({median(bin.moved), median(bin.off)});
  return all;
}

cluster::OpLaw law_of(std::span<const OpSample> samples) {
  cluster::OpLaw law;
  law.kind = to_string(samples.front().kind);
  law.dtype = samples.front().dtype;
  std::vector<Row> rows;
  for (const OpSample& s : samples) rows.push_back(row_of(s));
  const Terms x = least_squares(std::move(rows));
  law.call_seconds = x[0];
  law.flop_seconds = x[1];
  law.weight_byte_seconds = x[2];
  law.byte_seconds = x[3];
  law.corrections = corrections(law, samples);
  law.samples = std::ssize(samples);
  std::vector<double> errors;
  for (const OpSample& s : samples) errors.push_back(std::abs(law_time(law, s.work).count() / s.seconds - 1));
  law.median_error = median(errors);
  return law;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto number = static_cast<std::size_t>(static_cast<double>(values.size()) * share);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::min(number, values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

BesideOps beside_ops(std::span<const StepSample> steps) {
  std::vector<Row> rows;
  for (const StepSample& s : steps)
    if (s.seconds > 0)
      rows.push_back({.of = {s.ops / s.seconds, s.collectives / s.seconds, s.busy_seconds / s.seconds, 0},
                      .value = (s.seconds - s.busy_seconds) / s.seconds});
  const Terms x = least_squares(std::move(rows));
  return {.between_seconds = x[0], .meeting_seconds = x[1], .waiting_share = x[2]};
}

std::vector<cluster::OpLaw> laws_of(std::span<const OpSample> samples) {
  std::map<std::pair<std::size_t, Dtype>, std::vector<OpSample>> groups;
  for (const OpSample& s : samples)
    if (s.seconds > 0) groups[{s.kind.index, s.dtype}].push_back(s);
  std::vector<cluster::OpLaw> laws;
  for (const auto& [key, group] : groups) laws.push_back(law_of(group));
  return laws;
}

}  // namespace shard::cost
