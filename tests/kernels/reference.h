// Every operator in double precision, written from its definition; shares no code with the kernels.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shard::cpu::ref {

using Vec = std::vector<double>;
using Tokens = std::vector<std::int32_t>;
using Int = std::size_t;

inline Vec zeros(Int n) {
  return Vec(n, 0.0);
}

// y[t,o] = sum_i x[t,i] W(i,o) + b[o]
struct Linear {
  Int rows, in, out;
  bool in_out;
  Int at(Int i, Int o) const { return in_out ? i * out + o : o * in + i; }
};
inline Vec linear(const Linear& l, const Vec& x, const Vec& w, const Vec& b) {
  Vec y(l.rows * l.out);
  for (Int t = 0; t < l.rows; ++t)
    for (Int o = 0; o < l.out; ++o) {
      double sum = b.empty() ? 0.0 : b[o];
      for (Int i = 0; i < l.in; ++i) sum += x[t * l.in + i] * w[l.at(i, o)];
      y[t * l.out + o] = sum;
    }
  return y;
}
struct LinearGradient {
  Vec dx, dw, db;
};
inline LinearGradient linear_backward(const Linear& l, const Vec& x, const Vec& w, const Vec& dy) {
  LinearGradient g{zeros(l.rows * l.in), zeros(l.in * l.out), zeros(l.out)};
  for (Int t = 0; t < l.rows; ++t)
    for (Int o = 0; o < l.out; ++o) {
      const double d = dy[t * l.out + o];
      g.db[o] += d;
      for (Int i = 0; i < l.in; ++i) {
        g.dx[t * l.in + i] += d * w[l.at(i, o)];
        g.dw[l.at(i, o)] += d * x[t * l.in + i];
      }
    }
  return g;
}

struct Norm {
  Vec y, mean, rstd;
};
struct NormGradient {
  Vec dx, dw, db;
};
inline Norm layer_norm(Int rows, Int n, double eps, const Vec& x, const Vec& w, const Vec& b) {
  Norm r{zeros(rows * n), zeros(rows), zeros(rows)};
  for (Int t = 0; t < rows; ++t) {
    double mean = 0;
    double variance = 0;
    for (Int i = 0; i < n; ++i) mean += x[t * n + i] / static_cast<double>(n);
    for (Int i = 0; i < n; ++i) variance += std::pow(x[t * n + i] - mean, 2) / static_cast<double>(n);
    r.mean[t] = mean;
    r.rstd[t] = 1 / std::sqrt(variance + eps);
    for (Int i = 0; i < n; ++i) r.y[t * n + i] = (x[t * n + i] - mean) * r.rstd[t] * w[i] + b[i];
  }
  return r;
}
// Through mean and variance as variables of their own (the textbook chain rule, not the fused form).
inline NormGradient layer_norm_backward(Int rows, Int n, double eps, const Vec& x, const Vec& w, const Vec& dy) {
  const Norm f = layer_norm(rows, n, eps, x, w, zeros(n));
  NormGradient g{zeros(rows * n), zeros(n), zeros(n)};
  const auto count = static_cast<double>(n);
  for (Int t = 0; t < rows; ++t) {
    double d_variance = 0;
    double d_mean = 0;
    for (Int i = 0; i < n; ++i) {
      const double centred = x[t * n + i] - f.mean[t];
      const double d = dy[t * n + i] * w[i];
      g.dw[i] += dy[t * n + i] * centred * f.rstd[t];
      g.db[i] += dy[t * n + i];
      d_variance += d * centred * -0.5 * std::pow(f.rstd[t], 3);
      d_mean += -d * f.rstd[t];
    }
    for (Int i = 0; i < n; ++i) {
      const double centred = x[t * n + i] - f.mean[t];
      g.dx[t * n + i] = dy[t * n + i] * w[i] * f.rstd[t] + d_variance * 2 * centred / count + d_mean / count;
    }
  }
  return g;
}
inline Norm rms_norm(Int rows, Int n, double eps, const Vec& x, const Vec& w) {
  Norm r{zeros(rows * n), {}, zeros(rows)};
  for (Int t = 0; t < rows; ++t) {
    double square = 0;
    for (Int i = 0; i < n; ++i) square += x[t * n + i] * x[t * n + i];
    r.rstd[t] = 1 / std::sqrt(square / static_cast<double>(n) + eps);
    for (Int i = 0; i < n; ++i) r.y[t * n + i] = x[t * n + i] * r.rstd[t] * w[i];
  }
  return r;
}
inline NormGradient rms_norm_backward(Int rows, Int n, double eps, const Vec& x, const Vec& w, const Vec& dy) {
  const Norm f = rms_norm(rows, n, eps, x, w);
  NormGradient g{zeros(rows * n), zeros(n), {}};
  for (Int t = 0; t < rows; ++t) {
    double d_rstd = 0;
    for (Int i = 0; i < n; ++i) {
      d_rstd += dy[t * n + i] * w[i] * x[t * n + i];
      g.dw[i] += dy[t * n + i] * x[t * n + i] * f.rstd[t];
    }
    const double d_square = d_rstd * -0.5 * std::pow(f.rstd[t], 3) / static_cast<double>(n);
    for (Int i = 0; i < n; ++i) g.dx[t * n + i] = dy[t * n + i] * w[i] * f.rstd[t] + d_square * 2 * x[t * n + i];
  }
  return g;
}

struct Attention {
  Int batch, sequence, heads, kv_heads, dim;
  Vec kept{};  // [B,H,S,S]: factor of each probability, 0 where it is dropped; empty: all 1
  double factor(Int b, Int h, Int i, Int j) const {
    return kept.empty() ? 1.0 : kept[((b * heads + h) * sequence + i) * sequence + j];
  }
  Int q_at(Int b, Int s, Int h, Int d) const { return ((b * sequence + s) * heads + h) * dim + d; }
  Int k_at(Int b, Int s, Int h, Int d) const {
    return ((b * sequence + s) * kv_heads + h * kv_heads / heads) * dim + d;
  }
  Int q_size() const { return batch * sequence * heads * dim; }
  Int k_size() const { return batch * sequence * kv_heads * dim; }
};
struct AttentionResult {
  Vec y, lse;
};
inline Vec attention_row(const Attention& a, const Vec& q, const Vec& k, Int b, Int h, Int i, double* lse) {
  Vec p(i + 1);
  double sum = 0;
  for (Int j = 0; j <= i; ++j) {
    double dot = 0;
    for (Int d = 0; d < a.dim; ++d) dot += q[a.q_at(b, i, h, d)] * k[a.k_at(b, j, h, d)];
    p[j] = std::exp(dot / std::sqrt(static_cast<double>(a.dim)));
    sum += p[j];
  }
  for (double& v : p) v /= sum;
  *lse = std::log(sum);
  return p;
}
inline AttentionResult attention(const Attention& a, const Vec& q, const Vec& k, const Vec& v) {
  AttentionResult r{zeros(a.q_size()), zeros(a.batch * a.heads * a.sequence)};
  for (Int b = 0; b < a.batch; ++b)
    for (Int h = 0; h < a.heads; ++h)
      for (Int i = 0; i < a.sequence; ++i) {
        const Vec p = attention_row(a, q, k, b, h, i, &r.lse[(b * a.heads + h) * a.sequence + i]);
        for (Int j = 0; j <= i; ++j)
          for (Int d = 0; d < a.dim; ++d)
            r.y[a.q_at(b, i, h, d)] += p[j] * a.factor(b, h, i, j) * v[a.k_at(b, j, h, d)];
      }
  return r;
}
struct AttentionGradient {
  Vec dq, dk, dv;
};
inline AttentionGradient attention_backward(const Attention& a, const Vec& q, const Vec& k, const Vec& v,
                                            const Vec& dy) {
  AttentionGradient g{zeros(a.q_size()), zeros(a.k_size()), zeros(a.k_size())};
  const double scale = 1 / std::sqrt(static_cast<double>(a.dim));
  for (Int b = 0; b < a.batch; ++b)
    for (Int h = 0; h < a.heads; ++h)
      for (Int i = 0; i < a.sequence; ++i) {
        double lse = 0;
        const Vec p = attention_row(a, q, k, b, h, i, &lse);
        Vec dp = zeros(i + 1);
        for (Int j = 0; j <= i; ++j)
          for (Int d = 0; d < a.dim; ++d) {
            dp[j] += a.factor(b, h, i, j) * dy[a.q_at(b, i, h, d)] * v[a.k_at(b, j, h, d)];
            g.dv[a.k_at(b, j, h, d)] += p[j] * a.factor(b, h, i, j) * dy[a.q_at(b, i, h, d)];
          }
        // The Jacobian of softmax, in full: ds[j] = sum_l dp[l] p[l] ([l = j] - p[j]).
        for (Int j = 0; j <= i; ++j) {
          double ds = 0;
          for (Int l = 0; l <= i; ++l) ds += dp[l] * p[l] * ((l == j ? 1.0 : 0.0) - p[j]);
          for (Int d = 0; d < a.dim; ++d) {
            g.dq[a.q_at(b, i, h, d)] += scale * ds * k[a.k_at(b, j, h, d)];
            g.dk[a.k_at(b, j, h, d)] += scale * ds * q[a.q_at(b, i, h, d)];
          }
        }
      }
  return g;
}

// Complex rotation of pairs (i, i + D/2); direction -1 is the gradient (the transpose of a rotation).
inline Vec rotary(Int batch, Int sequence, Int heads, Int dim, double base, double direction, const Vec& x) {
  Vec y(x.size());
  for (Int t = 0; t < batch * sequence; ++t)
    for (Int h = 0; h < heads; ++h)
      for (Int i = 0; i < dim / 2; ++i) {
        const double angle = direction * static_cast<double>(t % sequence) *
                             std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(dim));
        const Int low = (t * heads + h) * dim + i;
        const Int high = low + dim / 2;
        y[low] = x[low] * std::cos(angle) - x[high] * std::sin(angle);
        y[high] = x[high] * std::cos(angle) + x[low] * std::sin(angle);
      }
  return y;
}

inline double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
inline double gelu_slope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
// What a family does to positions beside base: which elements of a head turn, heads behind them that do not, how fast
// each pair turns, and how much it grows.
struct Turn {
  Int batch, sequence, heads, passed, dim, turned;
  Vec frequencies;  // one for each of the turned / 2 pairs
  double factor;
};
inline Vec turn(const Turn& t, double direction, const Vec& x) {
  Vec y = x;
  const Int row = (t.heads + t.passed) * t.dim;
  for (Int token = 0; token < t.batch * t.sequence; ++token)
    for (Int h = 0; h < t.heads; ++h)
      for (Int i = 0; i < t.turned / 2; ++i) {
        const double angle = direction * static_cast<double>(token % t.sequence) * t.frequencies[i];
        const Int low = token * row + h * t.dim + i;
        const Int high = low + t.turned / 2;
        y[low] = t.factor * (x[low] * std::cos(angle) - x[high] * std::sin(angle));
        y[high] = t.factor * (x[high] * std::cos(angle) + x[low] * std::sin(angle));
      }
  return y;
}

// From [group][its queries, its key, its value] to [queries][keys][values], as a list of what goes where.
inline std::vector<Int> group_places(Int heads, Int kv_heads) {
  std::vector<Int> places;
  for (Int g = 0; g < kv_heads; ++g) {
    for (Int q = 0; q < heads / kv_heads; ++q) places.push_back(g * (heads / kv_heads) + q);
    places.push_back(heads + g);
    places.push_back(heads + kv_heads + g);
  }
  return places;
}

inline double gelu_erf(double x) {
  return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
}
inline double gelu_erf_slope(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}
inline double relu(double x) {
  return x > 0 ? x : 0;
}

inline double swiglu(double gate, double up) {
  return gate / (1 + std::exp(-gate)) * up;
}
inline double swiglu_gate_slope(double gate, double up) {
  const double e = std::exp(-gate);
  return up * (1 + e + gate * e) / ((1 + e) * (1 + e));
}

struct Loss {
  double loss;
  Vec lse;
};
inline Loss cross_entropy(Int rows, Int v, const Vec& logits, const Tokens& targets) {
  Loss r{0, zeros(rows)};
  for (Int t = 0; t < rows; ++t) {
    long double sum = 0;
    for (Int i = 0; i < v; ++i) sum += std::exp(static_cast<long double>(logits[t * v + i]));
    r.lse[t] = static_cast<double>(std::log(sum));
    r.loss += (r.lse[t] - logits[t * v + static_cast<Int>(targets[t])]) / static_cast<double>(rows);
  }
  return r;
}
inline Vec cross_entropy_backward(Int rows, Int v, const Vec& logits, const Tokens& targets, double scale) {
  const Loss f = cross_entropy(rows, v, logits, targets);
  Vec d(rows * v);
  for (Int t = 0; t < rows; ++t)
    for (Int i = 0; i < v; ++i) {
      const double p = std::exp(logits[t * v + i] - f.lse[t]);
      d[t * v + i] = (p - (static_cast<Int>(targets[t]) == i ? 1.0 : 0.0)) * scale / static_cast<double>(rows);
    }
  return d;
}

inline double mse(const Vec& a, const Vec& b) {
  double sum = 0;
  for (Int i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}
inline Vec mse_backward(const Vec& a, const Vec& b, double scale) {
  Vec d(a.size());
  for (Int i = 0; i < a.size(); ++i) d[i] = 2 * (a[i] - b[i]) * scale / static_cast<double>(a.size());
  return d;
}

}  // namespace shard::cpu::ref
