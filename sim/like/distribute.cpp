// Pass distribute: DistributedDataParallel's constructor and its gradient buckets.
#include <array>
#include <deque>

#include "sim/compile/passes/operands.h"
#include "sim/like/eager/ddp_buckets.h"
#include "sim/like/passes.h"

namespace shard::like {
namespace {

using plan::Operand;

class Distributor {
 public:
  Distributor(plan::Draft plan, const Rules& rules) : plan_(std::move(plan)), rules_(rules) {}

  plan::Draft run(std::vector<Mark>& marks) {
    create_local_model();
    marks.push_back({"after the local model", Phase::creation, creation_.size()});
    broadcast_state();
    check_shapes();
    make_buckets();
    marks.push_back({"after DDP", Phase::creation, creation_.size()});
    reduce();
    marks.push_back({"before step", Phase::first_step, plan_.find(Phase::first_step)->ops.size() - 1});
    plan_.phases.insert(plan_.phases.begin(), {.phase = Phase::creation, .ops = std::move(creation_)});
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const ParameterList& parameters() const { return plan_.model->parameters; }
  [[nodiscard]] Bytes bytes_of(std::size_t param) const { return plan_.buffers[param].bytes; }
  static BufferId parameter(std::size_t param) { return BufferId{static_cast<std::int32_t>(param)}; }

  /// Everything is allocated on the stream that is current, whichever stream then uses it.
  [[nodiscard]] plan::Op op(const std::string& name, plan::Part part, const plan::Action& action,
                            const std::vector<Operand>& operands) const {
    return {.name = plan_.text(name), .part = part, .action = action, .operands = plan_.list(operands)};
  }
  [[nodiscard]] plan::Communicate send(Collective kind, std::size_t full_operand, Bytes bytes) const {
    return {.kind = kind,
            .segments = plan_.list<plan::Segment>({{.shard_operand = static_cast<std::int32_t>(full_operand),
                                                    .full_operand = static_cast<std::int32_t>(full_operand),
                                                    .elems = Elems{bytes.count() / bytes_per_element(Dtype::f32)}}})};
  }

  /// Modules are made on the host; .to(device) allocates parameter by parameter.
  void create_local_model() {
    for (std::size_t p = 0; p < parameters().size(); ++p)
      creation_.push_back(op(parameters()[p].name + " to the device", plan::Part::creation, plan::Copy{},
                             {plan::writes(plan_, parameter(p))}));
  }

  /// state_dict(): a tied weight appears under both of its names.
  [[nodiscard]] std::vector<std::size_t> module_state() const {
    std::vector<std::size_t> state;
    for (std::size_t p = 0; p < parameters().size(); ++p) state.push_back(p);
    if (!plan_.model->tied_embeddings) return state;
    for (const model::Operator& head : plan_.graph->operators)
      if (head.name == "lm_head") state.push_back(static_cast<std::size_t>(head.params[0].value));
    return state;
  }

  struct Sent {
    std::size_t number = 0;
    std::vector<std::size_t> params{};
    BufferId flat{};  ///< not valid: a bucket of one tensor is sent as it lies
  };

  void broadcast_state() {
    const std::vector<std::size_t> state = module_state();
    std::vector<Bytes> sizes;
    for (std::size_t p : state) sizes.push_back(bytes_of(p));
    const std::array limits{rules_.broadcast_bucket};
    std::deque<Sent> in_flight;
    const auto finish_one = [&] {
      const Sent& sent = in_flight.front();
      std::vector<Operand> operands;
      if (sent.flat.valid()) operands.push_back(plan::reads(plan_, sent.flat));
      for (std::size_t p : sent.params) operands.push_back(plan::updates(plan_, parameter(p)));
      creation_.push_back(op("broadcast " + std::to_string(sent.number) + " copied back", plan::Part::creation,
                             plan::Copy{}, std::move(operands)));
      in_flight.pop_front();
    };
    std::size_t number = 0;
    for (const std::vector<std::size_t>& bucket : assign_buckets(sizes, limits)) {
      if (static_cast<std::int32_t>(in_flight.size()) >= rules_.broadcasts_in_flight) finish_one();
      Sent sent{.number = number++};
      Bytes bytes{0};
      std::vector<Operand> operands;
      for (std::size_t i : bucket) {
        sent.params.push_back(state[i]);
        operands.push_back(plan::reads(plan_, parameter(state[i])));
        bytes += sizes[i];
      }
      const std::string name = "broadcast " + std::to_string(sent.number);
      if (bucket.size() > 1) {
        sent.flat = plan_.add_buffer({.name = plan_.text(name), .category = Category::communication, .bytes = bytes});
        operands.push_back(plan::writes(plan_, sent.flat));
      }
      const std::size_t full = operands.size() - 1;
      creation_.push_back(
          op(name, plan::Part::creation, send(Collective::broadcast, full, bytes), std::move(operands)));
      in_flight.push_back(std::move(sent));
    }
    while (!in_flight.empty()) finish_one();
  }

  /// The reducer compares the ranks' shapes: sizes and strides of every parameter, as torch.long.
  void check_shapes() {
    constexpr std::int64_t kLongBytes = 8;
    std::int64_t numbers = 0;
    for (const Parameter& p : parameters()) numbers += 2 * static_cast<std::int64_t>(p.shape.size());
    const Bytes bytes{numbers * kLongBytes};
    const BufferId shapes = plan_.add_buffer({.name = "shapes", .category = Category::communication, .bytes = bytes});
    creation_.push_back(
        op("shapes", plan::Part::creation, send(Collective::broadcast, 0, bytes), {plan::writes(plan_, shapes)}));
  }

  /// Computed in forward order, made from the last to the first: the order in which backward will fill them.
  void make_buckets() {
    std::vector<Bytes> sizes;
    for (std::size_t p = 0; p < parameters().size(); ++p) sizes.push_back(bytes_of(p));
    const std::array limits{rules_.first_bucket, rules_.bucket};
    const std::vector<std::vector<std::size_t>> assigned = assign_buckets(sizes, limits);
    for (std::size_t b = assigned.size(); b-- > 0;) {
      Bytes bytes{0};
      for (std::size_t p : assigned[b]) bytes += sizes[p];
      const BufferId bucket = plan_.add_buffer({.name = plan_.text("gradient bucket ", std::to_string(b)),
                                                .category = Category::communication,
                                                .bytes = bytes,
                                                .persistent = true});
      creation_.push_back(op("gradient bucket " + std::to_string(b), plan::Part::creation, plan::Copy{},
                             {plan::writes(plan_, bucket)}));
      buckets_.push_back({.number = b, .params = assigned[b], .flat = bucket});
    }
  }

  /// A bucket leaves when its last gradient is there. Nothing is allocated for it, so all stand at the end.
  void reduce() {
    for (BufferId gradient : plan_.gradients) plan_.buffer(gradient).persistent = true;
    std::vector<plan::Op>& ops = plan_.find(Phase::first_step)->ops;
    plan::Op end = std::move(ops.back());
    ops.pop_back();
    for (const Sent& bucket : buckets_) {
      const std::string name = "gradient bucket " + std::to_string(bucket.number);
      ops.push_back(op("reduce " + name, plan::Part::reduce,
                       send(Collective::all_reduce, 0, plan_.buffer(bucket.flat).bytes),
                       {plan::updates(plan_, bucket.flat)}));
      std::vector<Operand> operands{plan::reads(plan_, bucket.flat)};
      for (std::size_t p : bucket.params) operands.push_back(plan::updates(plan_, plan_.gradients[p]));
      ops.push_back(op(name + " copied back", plan::Part::reduce, plan::Copy{}, std::move(operands)));
    }
    ops.push_back(std::move(end));
  }

  plan::Draft plan_;
  const Rules& rules_;
  std::vector<plan::Op> creation_;
  std::vector<Sent> buckets_;  ///< gradient buckets, in the order they are made
};

}  // namespace

plan::Draft distribute(plan::Draft plan, const Rules& rules, std::vector<Mark>& marks) {
  return Distributor(std::move(plan), rules).run(marks);
}

}  // namespace shard::like
