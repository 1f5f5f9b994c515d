// Weights of `shardscope train`.
#include "executor/commands/train_weights.h"

#include <cmath>
#include <utility>

#include "executor/numeric/finite.h"
#include "executor/state/torch/open.h"
#include "executor/train/together.h"
#include "sim/cli/contradiction.h"

namespace shard::commands {

void add_read_weights_option(cli::Group& group, WeightOptions& o) {
  group
      .add("weights", &o.read, "DIR|FILE",
           "begin with these: model.safetensors, or the folder that has it or its index and files")
      .common()
      .default_text("drawn, under --seed")
      .reads_file(cli::FilesOf(weights_files));
}

void add_save_weights_options(cli::Group& group, WeightOptions& o) {
  group
      .add("save-weights", &o.save, "DIR",
           "save the last step's parameters there, as transformers opens them: model.safetensors, or several files and "
           "their index")
      .common()
      .writes_into_directory([](const std::string& folder) { return saved_weights_files(folder); });
  group.add_choice<Dtype>("weights-dtype", &o.saved_dtype,
                          {{"f32", Dtype::f32, ""}, {"bf16", Dtype::bf16, ""}, {"f16", Dtype::f16, ""}},
                          "what saved parameters are stored as, rounded to nearest even");
  group.add("max-shard-size", &o.largest_file, "SIZE", "of saved parameters a file holds at most that, or one tensor")
      .least(1);
}

Result<std::shared_ptr<const Weights>> open_weights(const WeightOptions& options, const model::Model& model) {
  if (options.read.empty()) return std::shared_ptr<const Weights>();
  Result<Weights> weights = Weights::open(options.read, model);
  if (!weights && (weights.error().code == Errc::no_input || weights.error().code == Errc::malformed))
    if (const std::optional<std::string> form = torch::form_of(options.read))
      return Error{Errc::no_input, "is " + *form + ", and weights are read as safetensors", options.read,
                   "'shardscope checkpoint import " + options.read + " DIR', whose folder DIR/step-N has them"};
  if (!weights) return weights.error();
  return std::shared_ptr<const Weights>(std::make_shared<const Weights>(std::move(*weights)));
}

Result<void> check_save(const cli::Command& command, const WeightOptions& o) {
  if (o.save.empty()) {
    for (const char* const option : {"weights-dtype", "max-shard-size"})
      if (command.has(option) && command.given(option))
        return cli::contradiction(command.describe(option) + " is of saved weights, and none are saved",
                                  "--save-weights DIR");
    return {};
  }
  Result<void> possible = can_write_weights(o.save);
  if (possible) return {};
  Error error = possible.error();
  error.where = command.describe("save-weights");
  return error;
}

Result<std::unique_ptr<RankWeights>> RankWeights::start(const WeightOptions& options,
                                                        std::shared_ptr<const Weights> read, const std::string& config,
                                                        const plan::Plan& plan, Communicator& communicator) {
  const std::string own = read == nullptr ? "" : read->fingerprint();
  const auto all = communicator.exchange(own);
  if (!all) return all.error();
  for (std::size_t rank = 0; rank < all->size(); ++rank)
    if ((*all)[rank] != own)
      return Error{.code = Errc::contradiction,
                   .what = "rank " + std::to_string(rank) + " begins with other weights than rank " +
                           std::to_string(communicator.rank().value),
                   .where = "--weights",
                   .help = "the same files on every host"};
  std::unique_ptr<RankWeights> weights(new RankWeights);
  weights->read_ = std::move(read);
  weights->rank_ = communicator.rank().value;
  if (options.save.empty()) return weights;
  const SavedWeights what{.folder = options.save,
                          .stored = options.saved_dtype,
                          .largest_file = options.largest_file.count(),
                          .config = config};
  const auto draft = train::together(communicator, [&]() -> Result<std::string> {
    if (weights->rank_ > 0) return std::string();
    Result<WeightsWriter> writer = WeightsWriter::create(what, plan);
    if (!writer) return writer.error();
    weights->writer_.emplace(std::move(*writer));
    return weights->writer_->draft().string();
  });
  if (!draft) return draft.error();
  const auto joined = train::together(communicator, [&]() -> Result<std::string> {
    const plan::Position at = plan::position(plan.topology, weights->rank_);
    if (weights->rank_ == 0 || at.data > 0) return std::string();
    Result<WeightsWriter> writer = WeightsWriter::join(draft->front(), what, plan, at.tensor);
    if (!writer) return writer.error();
    weights->writer_.emplace(std::move(*writer));
    return std::string();
  });
  if (!joined) return joined.error();
  return weights;
}

void RankWeights::tell(train::SessionOptions& session) {
  if (read_ != nullptr)
    session.first_values = [this, keep_going = session.keep_going](model::ParamId param, std::int64_t first,
                                                                   std::span<float> values) -> Result<void> {
      const auto n = static_cast<std::int64_t>(values.size());
      read_bytes_ += read_->stored(param, n);
      if (Result<void> r = read_->read(param, first, values); !r) return r;
      const std::int64_t at = keep_going ? n : first_not_finite(values.data(), n);
      if (at == n) return {};
      return Error{.code = Errc::malformed,
                   .what = "element " + std::to_string(first + at) + " of " + read_->tensor_of(param) + " is " +
                           (std::isnan(values[static_cast<std::size_t>(at)]) ? "not a number" : "infinite") +
                           ", as rank " + std::to_string(rank_) + " read it",
                   .where = read_->file_of(param),
                   .help = "weights as they were before training lost them; --keep-going trains with these"};
    };
  if (writer_)
    session.read_state = [this](model::ParamId param, plan::Digest::Content content,
                                std::span<const std::byte> elements) { writer_->add(param, content, elements); };
}

Result<void> RankWeights::check(Communicator& communicator) {
  const auto parts = train::together(
      communicator, [&]() -> Result<std::string> { return writer_ ? writer_->finish_part() : std::string(); });
  if (!parts) return parts.error();
  const auto checked = train::together(communicator, [&]() -> Result<std::string> {
    if (rank_ > 0 || !writer_) return std::string();
    const Result<void> right = writer_->check(*parts);
    if (!right) return right.error();
    return std::string();
  });
  if (!checked) return checked.error();
  return {};
}

Result<void> RankWeights::finish() {
  return writer_ ? writer_->finish() : Result<void>();
}

WeightsReport RankWeights::report() const {
  WeightsReport report;
  if (read_ != nullptr) {
    report.read = read_->describe();
    report.tensors = static_cast<std::int64_t>(read_->tensors());
  }
  if (writer_) {
    report.saved = writer_->path().string();
    report.saved_files = writer_->files();
    report.saved_bytes = writer_->bytes();
  }
  return report;
}

}  // namespace shard::commands
