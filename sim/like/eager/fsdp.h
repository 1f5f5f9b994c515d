// FSDP of both kinds: units that are gathered before their use, forward and backward, and dropped behind it.
#pragma once

#include <functional>
#include <vector>

#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

/// A unit is a block, or an end of the model where these are apart; the last is what is left of the model's own part,
/// which stays gathered from forward to the end of backward.
class Fsdp : public Sharding {
 public:
  using Sharding::Sharding;

  void enter_model() override;
  void leave_model(const Tensor& loss, const Tensor& logits) override;
  Tensor enter(std::size_t block, const Tensor& x) override;
  void leave(std::size_t block, const Tensor& y) override;
  void end_backward() override;

 protected:
  struct Unit {
    std::vector<std::size_t> parameters{};
    bool gathered = false;  ///< or on its way
    bool in_backward = false;
    std::size_t forward_at = 0;  ///< in order_
  };
  /// The units of a model, whose parameters' sizes and types are known and whose memory is not there.
  void make_units(const model::Model& model);
  Unit& root() { return units_.back(); }
  [[nodiscard]] std::size_t index(const Unit& u) const { return static_cast<std::size_t>(&u - units_.data()); }

  /// Starts to gather.
  virtual void gather(Unit& unit) = 0;
  /// Ends it, before the unit is used.
  virtual void wait(Unit&, bool /*forward*/) {}
  virtual void drop(Unit& unit) = 0;
  /// Drops the unit and sums its gradients over ranks.
  virtual void reduce(Unit& unit) = 0;
  virtual void end_forward() {}

  std::vector<Unit> units_;

 private:
  /// Of a parameter outside of all blocks.
  Unit& unit_outside(const model::Model& model, std::size_t parameter);
  void leave(Unit& unit);
  void before_backward(Unit& unit);

  std::size_t blocks_ = 0;
  bool tied_ends_ = false;    ///< the embedding is in the unit of the model's end
  std::vector<Unit*> order_;  ///< in which forward left them
};

}  // namespace shard::like::eager
