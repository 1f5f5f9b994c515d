// Matrix products: which operands are copied first, and in which order backward makes gradients.
#include <cassert>
#include <cstring>
#include <string_view>

#include "sim/like/eager/operators.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {
namespace {

/// The gradient of a second operand (k, m), which lies as that operand does (mm_mat2_backward).
Tensor second_gradient(Runtime& r, const Tensor& first, const Tensor& gradient, bool columns) {
  if (!columns) return r.mm(transposed(first, 0, 1), gradient);
  return transposed(r.mm(transposed(gradient, 0, 1), first), 0, 1);
}

/// Whether a matrix lies column by column.
bool by_columns(const Tensor& x) {
  return x.strides()[0] == 1 && x.strides()[1] == x.sizes()[0];
}

Tensor mm(Runtime& r, const Tensor& a, const Tensor& b) {
  r.tape().begin_op("mm");
  if (recorded(r, {&a, &b})) r.graph().before_kernel();
  Tensor y = r.kept_product([&] { return r.mm(a, b); });
  if (!recorded(r, {&a, &b})) return y;
  const Tensor keep_a = b.needs_gradient() ? a.saved() : Tensor{};
  const Tensor keep_b = a.needs_gradient() ? b.saved() : Tensor{};
  r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)},
                   [&r, keep_a, keep_b, columns = by_columns(b), rows = !by_columns(a)](const Tensors& g) -> Tensors {
                     r.tape().begin_op("mm");
                     Tensor to_b, to_a;
                     if (keep_a) to_b = second_gradient(r, keep_a, g[0], columns);
                     if (keep_b)
                       to_a = rows ? r.mm(g[0], transposed(keep_b, 0, 1))
                                   : transposed(r.mm(keep_b, transposed(g[0], 0, 1)), 0, 1);
                     return {std::move(to_a), std::move(to_b)};
                   });
  return y;
}

/// A result seen in another size, which autograd knows no base of (_unsafe_view).
Tensor unsafe_view(Runtime& r, Tensor y, const Dims& sizes) {
  return reshape(r, y, sizes);
}

Dims with_last(const Tensor& x, std::int64_t columns) {
  Dims sizes = x.sizes();
  sizes[sizes.rank - 1] = columns;
  return sizes;
}

Tensor flat(Runtime& r, const Tensor& x) {
  return reshape(r, x, {x.elements() / x.sizes().back(0), x.sizes().back(0)});
}

Tensor addmm_of_matrices(Runtime& r, const Tensor& bias, const Tensor& a, const Tensor& b) {
  r.tape().begin_op("addmm");
  if (recorded(r, {&bias, &a, &b})) r.graph().before_kernel();
  Tensor y = r.addmm(a, b);
  if (!recorded(r, {&bias, &a, &b})) return y;
  const Tensor keep_a = b.needs_gradient() ? a.saved() : Tensor{};
  const Tensor keep_b = a.needs_gradient() ? b.saved() : Tensor{};
  r.graph().record(y, {r.graph().edge(bias), r.graph().edge(a), r.graph().edge(b)},
                   [&r, keep_a, keep_b, columns = by_columns(b)](const Tensors& g) -> Tensors {
                     r.tape().begin_op("addmm");
                     Tensor to_a, to_b;
                     if (keep_b) to_a = r.mm(g[0], transposed(keep_b, 0, 1));
                     if (keep_a) to_b = second_gradient(r, keep_a, g[0], columns);
                     return {g[0], std::move(to_a), std::move(to_b)};
                   });
  return y;
}

/// LinearFunctionForZeroStage3: runtime/zero/linear.py. One node; the bias is added in place.
Tensor linear_that_keeps_its_weight(Runtime& r, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor rows = r.reshape(x, {x.elements() / x.sizes().back(0), x.sizes().back(0)});
  r.tape().begin_op("mm");
  Tensor y = r.mm(rows, transposed(weight, 0, 1));
  y = y.seen_as(with_last(x, weight.sizes()[0]));
  if (!recorded(r, {&x, &weight})) return y;
  std::vector<Edge> edges{r.graph().edge(x), r.graph().edge(weight)};
  if (bias) edges.push_back(r.graph().edge(bias));
  const Tensor kept_bias = bias ? bias.saved() : Tensor{};
  r.graph().record(y, std::move(edges),
                   [&r, x = x.saved(), weight = weight.saved(), kept_bias](const Tensors& g) -> Tensors {
                     r.tape().begin_op("mm");
                     const auto matrix = [&r](const Tensor& t) {
                       return r.reshape(t, {t.elements() / t.sizes().back(0), t.sizes().back(0)});
                     };
                     Tensors out;
                     out.push_back(r.mm(matrix(g[0]), weight).seen_as(x.sizes()));
                     out.push_back(r.mm(transposed(matrix(g[0]), 0, 1), matrix(x)));
                     if (kept_bias) out.push_back(r.sum_to(g[0], kept_bias.sizes()));
                     return out;
                   });
  return y;
}

}  // namespace

// Operands are cast from the last to the first: the compiler of PyTorch's wheels evaluates arguments so.
Tensor linear(Runtime& r, const Tensor& given, const Tensor& full_weight, const Tensor& full_bias) {
  if (r.sharding != nullptr && r.sharding->replaces_linear())
    return linear_that_keeps_its_weight(r, given, full_weight, full_bias);
  const Tensor bias = lowered(r, full_bias), weight = lowered(r, full_weight), x = lowered(r, given);
  const Dims sizes = with_last(x, weight.sizes()[0]);
  if (bias) {
    const Tensor rows = flat(r, x);
    const Tensor columns = transpose(r, weight, 0, 1);
    return reshape(r, addmm_of_matrices(r, bias, rows, columns), sizes);
  }
  const Tensor columns = transpose(r, weight, 0, 1);
  const Tensor rows = flat(r, x);
  return unsafe_view(r, mm(r, rows, columns), sizes);
}

Tensor addmm(Runtime& r, const Tensor& full_bias, const Tensor& given, const Tensor& full_weight) {
  const Tensor full_rows = flat(r, given);
  const Tensor weight = lowered(r, full_weight), rows = lowered(r, full_rows), bias = lowered(r, full_bias);
  const Tensor& x = given;
  return reshape(r, addmm_of_matrices(r, bias, rows, weight), with_last(x, weight.sizes()[1]));
}

Tensor bmm(Runtime& r, const Tensor& first, const Tensor& second) {
  const Tensor b = lowered(r, second), a = lowered(r, first);
  r.tape().begin_op("bmm");
  Tensor y = r.bmm(a, b);
  if (!recorded(r, {&a, &b})) return y;
  const Tensor keep_a = b.needs_gradient() ? a.saved() : Tensor{};
  const Tensor keep_b = a.needs_gradient() ? b.saved() : Tensor{};
  r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)}, [&r, keep_a, keep_b](const Tensors& g) -> Tensors {
    r.tape().begin_op("bmm");
    Tensor to_b, to_a;
    if (keep_a) to_b = r.bmm(transposed(keep_a, 1, 2), g[0]);
    if (keep_b) to_a = r.bmm(g[0], transposed(keep_b, 1, 2));
    return {std::move(to_a), std::move(to_b)};
  });
  return y;
}

Tensor baddbmm(Runtime& r, const Tensor& /*x*/, const Tensor& a, const Tensor& b) {
  r.tape().begin_op("baddbmm");
  Tensor y = r.bmm(a, b);
  if (!recorded(r, {&a, &b})) return y;
  r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)},
                   [&r, a = a.saved(), b = b.saved()](const Tensors& g) -> Tensors {
                     r.tape().begin_op("baddbmm");
                     const auto scaled = [&](const Tensor& t) { return r.elementwise({t}, t.scalar()); };
                     Tensor to_a, to_b;
                     {
                       const Tensor product = r.bmm(g[0], transposed(b, 1, 2));
                       to_a = scaled(product);
                     }
                     {
                       const Tensor product = r.bmm(transposed(a, 1, 2), g[0]);
                       to_b = scaled(product);
                     }
                     return {std::move(to_a), std::move(to_b)};
                   });
  return y;
}

Tensor matmul(Runtime& r, const Tensor& first, const Tensor& second) {
  assert(first.sizes().rank == 4 && second.sizes().rank == 4);
  const Tensor b = lowered(r, second), a = lowered(r, first);
  const std::int64_t batch = a.size(0) * a.size(1);
  Tensor product;
  {
    const Tensor left = reshape(r, expand(r, a, a.sizes()), {batch, a.size(2), a.size(3)});
    const Tensor wide = expand(r, b, {a.size(0), a.size(1), b.size(2), b.size(3)});  // one head of keys for all
    const Tensor right = reshape(r, wide, {batch, b.size(2), b.size(3)});
    product = bmm(r, left, right);
  }
  return unsafe_view(r, std::move(product), {a.size(0), a.size(1), a.size(2), b.size(3)});
}

namespace {

/// An operand with one dimension for every letter, in the letters' order; of one element where it lacks it.
Tensor aligned(Runtime& r, const Tensor& x, std::string_view own, std::string_view letters) {
  std::vector<std::size_t> order;
  for (const char c : letters)
    if (const std::size_t at = own.find(c); at != std::string_view::npos) order.push_back(at);
  const Tensor moved = permute(r, x, order);
  Dims sizes, strides;
  std::size_t next = 0;
  for (const char c : letters) {
    const bool has = own.find(c) != std::string_view::npos;
    sizes.push(has ? moved.sizes()[next] : 1);
    next += has ? 1 : 0;
  }
  return reshape(r, moved, sizes);
}

/// Where a letter belongs in sumproduct_pair().
struct Roles {
  std::vector<std::size_t> both, left, right, summed;
};

std::int64_t elements_of(const Tensor& x, const std::vector<std::size_t>& dimensions) {
  std::int64_t n = 1;
  for (const std::size_t d : dimensions) n *= x.sizes()[d];
  return n;
}

std::vector<std::size_t> joined(std::initializer_list<const std::vector<std::size_t>*> lists) {
  std::vector<std::size_t> all;
  for (const auto* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

}  // namespace

Tensor einsum(Runtime& r, const char* pattern, const Tensor& first, const Tensor& second) {
  const Tensor a = lowered(r, first), b = lowered(r, second);  // a list of operands is cast in its own order
  const std::string_view text = pattern;
  const std::size_t comma = text.find(','), arrow = text.find("->");
  const std::string_view of_a = text.substr(0, comma), of_b = text.substr(comma + 1, arrow - comma - 1);
  std::string letters(text.substr(arrow + 2));
  const std::size_t kept = letters.size();
  for (const char c : of_a)
    if (letters.find(c) == std::string::npos) letters += c;
  const Tensor x = aligned(r, a, of_a, letters), y = aligned(r, b, of_b, letters);
  Roles roles;
  for (std::size_t d = 0; d < letters.size(); ++d) {
    const bool in_x = x.sizes()[d] != 1, in_y = y.sizes()[d] != 1;
    (d >= kept ? roles.summed : in_x && in_y ? roles.both : in_x ? roles.left : roles.right).push_back(d);
  }
  const std::int64_t both = elements_of(x, roles.both), summed = elements_of(x, roles.summed);
  const std::int64_t rows = elements_of(x, roles.left), columns = elements_of(y, roles.right);
  const std::vector<std::size_t> result = joined({&roles.both, &roles.left, &roles.summed, &roles.right});
  Tensor product;
  {
    const Tensor left = reshape(r, permute(r, x, joined({&roles.both, &roles.left, &roles.summed, &roles.right})),
                                {both, rows, summed});
    const Tensor right = reshape(r, permute(r, y, joined({&roles.both, &roles.summed, &roles.right, &roles.left})),
                                 {both, summed, columns});
    product = bmm(r, left, right);
  }
  Dims wide;
  for (const std::size_t d : result) wide.push(d >= kept ? 1 : std::max(x.sizes()[d], y.sizes()[d]));
  std::vector<std::size_t> back(result.size());
  for (std::size_t i = 0; i < result.size(); ++i) back[result[i]] = i;
  const Tensor ordered = permute(r, reshape(r, product, wide), back);
  Dims sizes = ordered.sizes();
  sizes.rank = kept;
  return reshape(r, ordered, sizes);
}

}  // namespace shard::like::eager
