// torch/distributed/fsdp: FullyShardedDataParallel, blocks wrapped by transformer_auto_wrap_policy, PyTorch 2.11.
#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "sim/like/eager/fsdp.h"
#include "traces/base/division.h"

namespace shard::like::eager {
namespace {

/// Streams whose blocks are apart from the program's. On a GPU what the next stream still reads comes back later.
constexpr std::uint8_t kCast = 1, kUnshard = 2, kPostBackward = 3;

class Fsdp1 final : public Fsdp {
 public:
  using Fsdp::Fsdp;

  void create(const model::Model& model, const std::function<void()>& make_buffers) override {
    make_units(model);
    tied_ = model.tied_embeddings;
    r_.graph().sum_parameters_on(kUnshard);  // where views of the flat parameter are made
    for (const auto& parameter : model.parameters) names_.emplace_back(parameter.name);
    flats_.resize(units_.size());
    for (Unit& u : units_) shard(u, &u == &root() ? make_buffers : std::function<void()>{});
    show_shards();
  }
  void enter_model() override {
    if (!std::exchange(entered_, true)) {
      try_out(flats_.back());
      for (std::size_t i = 0; i + 1 < flats_.size(); ++i) try_out(flats_[i]);
      if (offloads()) show_shards();
    }
    in_backward_ = false;
    Fsdp::enter_model();
  }
  void end_forward() override {
    in_backward_ = true;
    if (options_.reshard_after_forward) flats_.back().moved = {};
    unsharded_.assign(units_.size(), false);
  }
  void end_backward() override {
    Fsdp::end_backward();
    sums_.clear();
  }
  /// FullyShardedDataParallel.clip_grad_norm_: norms in fp32, one by one.
  void clip() override {
    r_.tape().set_module("", -1);
    r_.tape().set_part(Part::optimizer, Category::workspace);
    r_.tape().begin_op("clip_grad_norm_");
    if (!zero_scalar_) zero_scalar_ = r_.empty({}, Scalar::f32);
    const auto number = [this] { return r_.empty({}, Scalar::f32); };
    const Tensor local = offloads() ? number() : norm_of_shard();
    Tensor total = number();
    total = number();
    if (offloads()) return;  // what remains is the host's
    Tensor shifted = number(), inverse = number();
    const Tensor coefficient = number();
    inverse = {};
    shifted = {};
    const Tensor clamped = number();
    if (options_.resting == Scalar::f32) return;
    for (std::size_t i = 0; i < shard_gradients_.size(); ++i) const Tensor cast = r_.empty({}, options_.resting);
    const Tensor returned = r_.empty({}, options_.resting);
  }

 private:
  Tensor norm_of_shard() {
    Tensors norms;
    for (const Tensor& gradient : shard_gradients_) norms.push_back(r_.reduce(gradient, 1U, Scalar::f32));
    const Tensor stacked = r_.empty({static_cast<std::int64_t>(norms.size())}, Scalar::f32);
    while (!norms.empty()) norms.pop_back();
    return r_.reduce(stacked, 1U, Scalar::f32);
  }

  /// A unit's parameters one behind the other.
  struct Flat {
    std::int64_t elements = 0;             ///< alignment included
    std::int64_t own = 0;                  ///< of a rank, which the last rank's are padded to
    std::vector<std::int64_t> starts{};    ///< by parameter of the unit
    std::vector<std::int64_t> paddings{};  ///< elements of those that are tensors beside the parameters
    Tensor whole{}, shard{};
    Tensor gradient{};  ///< offloaded: _cpu_grad
    Tensor moved{};     ///< offloaded: the shard on the GPU, which original parameters are views of until resharded
  };
  /// What the optimizer has of a flat: rank 0's.
  struct Piece {
    std::size_t unit;
    std::int64_t elements;
  };

  [[nodiscard]] bool casts() const { return options_.compute != options_.resting; }

  /// FlatParamHandle: with the original parameters kept, each begins at a multiple of 16 bytes.
  Flat lay_out(const Unit& u) const {
    Flat flat;
    const std::int64_t aligned = options_.original_parameters ? 16 / bytes_of(options_.compute) : 1;
    for (const std::size_t p : u.parameters) {
      pad(flat, divide_up(flat.elements, aligned) * aligned);
      flat.starts.push_back(flat.elements);
      flat.elements += r_.parameters()[p].elements();
    }
    flat.own = divide_up(flat.elements, options_.ranks);
    if (options_.original_parameters) pad(flat, flat.own * options_.ranks);
    return flat;
  }
  /// Where the parameters of a unit lie among them, those of its outer modules first: _move_module_to_device().
  [[nodiscard]] std::vector<std::size_t> by_depth(const Unit& u) const {
    std::vector<std::size_t> order(u.parameters.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t at) {
      const std::string_view name = names_[u.parameters[at]];
      // A tied table is the head's, too, which is a module of the model itself.
      return tied_ && u.parameters[at] == 0 ? 1 : std::ranges::count(name, '.');
    });
    return order;
  }
  static void pad(Flat& flat, std::int64_t elements) {
    if (elements > flat.elements) flat.paddings.push_back(elements - flat.elements);
    flat.elements = elements;
  }

  void shard(Unit& u, const std::function<void()>& make_buffers) {
    Flat& flat = flats_[index(u)];
    flat = lay_out(u);
    const std::string_view name =
        &u == &root() ? "flat parameter" : r_.tape().keep("flat parameter of block " + std::to_string(index(u)));
    r_.tape().begin_op("FullyShardedDataParallel");
    Tensors moved(u.parameters.size());
    for (const std::size_t at : by_depth(u))
      moved[at] = r_.empty(r_.parameters()[u.parameters[at]].sizes(), options_.resting);
    if (make_buffers) make_buffers();
    Tensors paddings;
    for (const std::int64_t elements : flat.paddings) {  // ones, times the value that marks padding
      const Tensor ones = r_.empty({elements}, options_.resting);
      paddings.push_back(r_.empty({elements}, options_.resting));
    }
    r_.tape().begin_op(name);
    Tensor together = r_.empty({flat.elements}, options_.resting);
    paddings.clear();
    flat.shard = r_.empty({flat.own}, options_.resting);
    together = {};
    for (Tensor& each : moved) each = {};
    if (offloads()) flat.shard = on_host({flat.own}, options_.resting, false);
    flat.whole = r_.without_memory({flat.own * options_.ranks}, options_.compute);
    for (const std::size_t p : u.parameters) {
      Tensor& t = r_.parameters()[p];
      t = flat.whole.view(t.sizes(), t.strides());
      t.set_parameter(static_cast<std::int32_t>(p));
    }
  }

  /// init_flat_param_attributes(): memory of each kind is taken once and freed.
  void try_out(Flat& flat) {
    r_.tape().begin_op("init_flat_param_attributes");
    if (offloads()) pin(flat);
    const auto once = [&](std::int64_t elements, Scalar scalar) { const Tensor t = r_.empty({elements}, scalar); };
    if (casts()) once(flat.own, options_.compute);
    once(flat.own * options_.ranks, options_.compute);
    if (casts()) once(flat.own * options_.ranks, options_.resting);
  }

  void pin(Flat& flat) {
    const Tensor pageable = flat.shard;
    flat.shard = on_host({flat.own}, options_.resting, true);
    r_.tape().set_name(flat.shard.storage().buffer(), "", pageable.storage().buffer(), "");
    const Tensor zeros = on_host({flat.own}, options_.resting, false);
    flat.gradient = on_host({flat.own}, options_.resting, true);
    r_.tape().set_category(flat.shard.storage().buffer(), Category::parameter);
    r_.tape().set_category(flat.gradient.storage().buffer(), Category::gradient);
  }

  /// Flat parameters, the model's own first; or what of each original parameter lies in this rank's shard.
  void show_shards() {
    pieces_.clear();
    shards_.clear();
    if (!options_.original_parameters) {
      for (std::size_t i = 0; i < flats_.size(); ++i) {
        const std::size_t unit = i == 0 ? flats_.size() - 1 : i - 1;
        pieces_.push_back({unit, flats_[unit].own});
      }
    } else {
      std::vector<std::int64_t> of(r_.parameters().size(), 0);
      std::vector<std::size_t> unit_of(of.size(), 0);
      for (const Unit& u : units_)
        for (std::size_t i = 0; i < u.parameters.size(); ++i) {
          const std::size_t p = u.parameters[i];
          const Flat& flat = flats_[index(u)];
          of[p] = std::min(r_.parameters()[p].elements(), std::max<std::int64_t>(0, flat.own - flat.starts[i]));
          unit_of[p] = index(u);
        }
      for (std::size_t p = 0; p < of.size(); ++p)
        if (of[p] > 0) pieces_.push_back({unit_of[p], of[p]});
    }
    for (const Piece& piece : pieces_) shards_.push_back(flats_[piece.unit].shard.view({piece.elements}, {1}));
    shard_gradients_.resize(shards_.size());
  }

  /// FlatParamHandle.pre_unshard(): an offloaded shard comes to the GPU once in backward even where the whole is there.
  [[nodiscard]] bool comes_again(const Unit& u) {
    if (!offloads() || !in_backward_) return false;
    const bool again = !unsharded_[index(u)];
    unsharded_[index(u)] = true;
    return again;
  }
  /// What is gathered of.
  Tensor own_part(const Flat& flat) {
    Tensor cast;
    r_.tape().on_stream(kCast);
    if (casts()) cast = r_.empty({flat.own}, options_.compute);
    Tensor moved;
    if (offloads()) moved = r_.empty({flat.own}, options_.resting);
    return casts() ? cast : moved;
  }

  void gather(Unit& u) override {
    const bool again = comes_again(u);
    if (u.gathered && !again) return;
    Flat& flat = flats_[index(u)];
    r_.tape().begin_op("all-gather");
    const Tensor own = own_part(flat);
    if (offloads() && !casts() && options_.original_parameters) flat.moved = own;
    if (std::exchange(u.gathered, true)) {
      r_.tape().on_stream(0);
      return;
    }
    r_.tape().on_stream(kUnshard);
    const BufferId memory = r_.tape().take(flat.whole.bytes());
    r_.tape().set_category(memory, Category::gathered);
    r_.tape().set_name(memory, "", flat.shard.storage().buffer(), "");
    flat.whole.storage().refill(memory);
    r_.tape().on_stream(0);
  }
  void drop(Unit& u) override {
    flats_[index(u)].whole.storage().drop();
    flats_[index(u)].moved = {};
    u.gathered = false;
  }

  /// The gradients become one, behind the views of the flat parameter that forward used; _post_backward_hook.
  void reduce(Unit& u) override {
    const Flat& flat = flats_[index(u)];
    r_.tape().begin_op("reduce-scatter");
    r_.tape().on_stream(kUnshard);
    Tensors zeros;  // of paddings
    for (const std::int64_t elements : flat.paddings) zeros.push_back(r_.empty({elements}, options_.compute));
    Tensor computed = staged({flat.elements}, options_.compute, Category::gradient);
    zeros.clear();
    for (const std::size_t p : u.parameters) r_.graph().gradients()[p] = {};
    drop(u);
    r_.tape().on_stream(kPostBackward);
    Tensor wide;
    if (options_.reduced != options_.compute) wide = staged({flat.elements}, options_.reduced, Category::communication);
    Tensor padded;
    if (flat.own * options_.ranks > flat.elements)
      padded = staged({flat.own * options_.ranks}, options_.reduced, Category::communication);
    Tensor sum = staged({flat.own}, options_.reduced, Category::gradient);
    if (options_.reduced != options_.resting) sum = staged({flat.own}, options_.resting, Category::gradient);
    r_.tape().on_stream(0);
    wide = {};
    padded = {};
    computed = {};
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      if (pieces_[i].unit == index(u) && !shard_gradients_[i])
        shard_gradients_[i] = (offloads() ? flat.gradient : sum).view({pieces_[i].elements}, {1});
    if (offloads()) sums_.push_back(sum);
  }

  Tensor staged(const Dims& sizes, Scalar scalar, Category category) {
    Tensor t = r_.empty(sizes, scalar);
    r_.tape().set_category(t.storage().buffer(), category);
    return t;
  }

  std::vector<Flat> flats_;         ///< by unit
  std::vector<std::string> names_;  ///< of the model's parameters
  bool tied_ = false;
  std::vector<Piece> pieces_;
  bool entered_ = false;
  bool in_backward_ = false;
  std::vector<bool> unsharded_;  ///< by unit, in this backward
  Tensors sums_;                 ///< offloaded, but there until backward ends: _saved_grad_shard
  Tensor zero_scalar_;           ///< of the first clip_grad_norm_() on
};

}  // namespace

std::unique_ptr<Sharding> fsdp1(Runtime& runtime, const ShardingOptions& options) {
  return std::make_unique<Fsdp1>(runtime, options);
}

}  // namespace shard::like::eager
