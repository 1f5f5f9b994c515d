// The order of tensors in the file is that in which the digest phase shows them, so that it is written front to back.
#include "executor/state/weights_writer.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "executor/numeric/half.h"
#include "executor/state/safetensors.h"
#include "executor/state/tensor_file.h"
#include "traces/base/file_place.h"
#include "traces/base/output_file.h"
#include "traces/base/stop.h"

namespace shard {
namespace {

namespace fs = std::filesystem;
using Content = plan::Digest::Content;
using safetensors::Tensor;

/// SHA-256 of bytes as they come.
class RunningSha {
 public:
  RunningSha() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }
  RunningSha(const RunningSha&) = delete;
  RunningSha& operator=(const RunningSha&) = delete;
  ~RunningSha() { EVP_MD_CTX_free(context_); }
  void add(std::span<const std::byte> bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
  [[nodiscard]] std::array<unsigned char, 32> finish() {
    std::array<unsigned char, 32> out{};
    EVP_DigestFinal_ex(context_, out.data(), nullptr);
    return out;
  }

 private:
  EVP_MD_CTX* context_;
};

/// fp32 where there are masters; parameters that are frozen have none.
Content content_of(const plan::Plan& plan, const plan::Flat& flat) {
  return plan.strategy.has_masters() && !flat.frozen ? Content::master : Content::parameter;
}

/// Parameters in the order in which the digest phase shows their values.
std::vector<Tensor> tensors_of(const plan::Plan& plan, Dtype stored) {
  std::vector<Tensor> tensors;
  const plan::PhaseOps* const phase = plan.find(Phase::digest);
  assert(phase != nullptr);
  std::int64_t at = 0;
  for (const plan::Op& op : phase->ops) {
    const auto* const shown = std::get_if<plan::Digest>(&op.action);
    if (shown == nullptr) continue;
    const plan::Flat& flat = plan.flats[static_cast<std::size_t>(shown->flat)];
    if (shown->content != content_of(plan, flat)) continue;
    for (const plan::Flat::Item& item : flat.items) {
      if (shown->param.valid() && item.param != shown->param) continue;
      const Parameter& p = plan.model->parameters[static_cast<std::size_t>(item.param.value)];
      const std::int64_t end = at + bytes_of(stored, p.elems).count();
      tensors.push_back({.name = p.name,
                         .dtype = safetensors::dtype_word(stored),
                         .shape = p.shape,
                         .elements = p.elems.count(),
                         .begin = at,
                         .end = end});
      at = end;
    }
  }
  return tensors;
}

Error not_as_written(const fs::path& path, const std::string& what) {
  return {Errc::io, "what was written reads differently: " + what, path.string(), "another disk"};
}

}  // namespace

struct WeightsWriter::State {
  const plan::Plan* plan = nullptr;
  Dtype stored = Dtype::f32;
  fs::path folder;
  bool made_folder = false;
  stop::Registration at_stop;  ///< of a folder that was made
  std::optional<OutputFile> out;
  std::vector<Tensor> tensors;
  std::size_t next = 0;  ///< of `tensors`, the one that comes
  std::int64_t bytes = 0;
  RunningSha sha;

  ~State() {
    out.reset();
    std::error_code fault;
    if (made_folder) fs::remove(folder, fault);  // only if it is empty
  }

  void write(std::span<const std::byte> part) {
    out->write(part);
    sha.add(part);
  }
  /// Elements of a type as `stored`.
  template <class From>
  void convert(std::span<const std::byte> elements) {
    const auto* const from = reinterpret_cast<const From*>(elements.data());
    const std::size_t count = elements.size() / sizeof(From);
    std::array<float, 4096> wide;
    std::array<std::uint16_t, 4096> narrow;
    for (std::size_t done = 0; done < count;) {
      const std::size_t now = std::min(wide.size(), count - done);
      for (std::size_t i = 0; i < now; ++i) wide[i] = to_f32(from[done + i]);
      if (stored == Dtype::f32) {
        write(std::as_bytes(std::span(wide).first(now)));
      } else {
        for (std::size_t i = 0; i < now; ++i)
          narrow[i] = stored == Dtype::bf16 ? to_bf16(wide[i]).bits : to_f16(wide[i]).bits;
        write(std::as_bytes(std::span(narrow).first(now)));
      }
      done += now;
    }
  }
};

fs::path weights_file_in(const fs::path& folder) {
  return folder / "model.safetensors";
}

Result<void> can_write_weights(const fs::path& folder) {
  std::error_code fault;
  if (fs::is_directory(folder, fault)) {
    const fs::path file = weights_file_in(folder);
    const Result<FilePlace> place = file_place(file);
    if (!place) return place.error();
    if (place->kind != FilePlace::Kind::file)
      return Error{Errc::cannot_create, "is a device or a pipe; what is saved is read again", file.string(),
                   "another folder"};
    return can_write(file);
  }
  if (fs::exists(folder, fault))
    return Error{Errc::cannot_create, "is a file; weights are saved into a folder", folder.string(),
                 "the name of a folder, in which model.safetensors is written"};
  // A slash at the end is no name.
  return can_write(folder.has_filename() ? folder : folder.parent_path());
}

WeightsWriter::WeightsWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
WeightsWriter::WeightsWriter(WeightsWriter&&) noexcept = default;
WeightsWriter& WeightsWriter::operator=(WeightsWriter&&) noexcept = default;
WeightsWriter::~WeightsWriter() = default;

Result<WeightsWriter> WeightsWriter::create(const fs::path& folder, const plan::Plan& plan, Dtype stored) {
  assert(plan.model->split.degree == 1);
  auto state = std::make_unique<State>();
  state->plan = &plan;
  state->stored = stored;
  state->folder = folder;
  std::error_code fault;
  {
    const stop::NotNow hold;
    state->made_folder = fs::create_directory(folder, fault);
    if (state->made_folder)
      state->at_stop = stop::at_stop([folder] {
        std::error_code ignored;
        fs::remove(folder, ignored);
      });
  }
  if (fault) return Error{Errc::cannot_create, "the folder cannot be made: " + fault.message(), folder.string(), ""};
  state->tensors = tensors_of(plan, stored);
  Result<OutputFile> out = OutputFile::create(weights_file_in(folder));
  if (!out) return out.error();
  state->out.emplace(std::move(*out));
  const std::string header = safetensors::write_header(state->tensors);
  state->out->write(safetensors::write_prefix(static_cast<std::int64_t>(header.size())));
  state->out->write(header);
  state->bytes = safetensors::kPrefixBytes + static_cast<std::int64_t>(header.size());
  if (!state->tensors.empty()) state->bytes += state->tensors.back().end;
  return WeightsWriter(std::move(state));
}

void WeightsWriter::add(model::ParamId param, Content content, std::span<const std::byte> elements) {
  State& s = *state_;
  if (content != Content::parameter && content != Content::master) return;
  const model::Model& model = *s.plan->model;
  const Parameter& p = model.parameters[static_cast<std::size_t>(param.value)];
  const bool masters = s.plan->strategy.has_masters() && !model.is_frozen(param);
  if ((content == Content::master) != masters) return;
  assert(s.next < s.tensors.size() && s.tensors[s.next].name == p.name);
  ++s.next;
  if (static_cast<std::int64_t>(elements.size()) == bytes_of(Dtype::f32, p.elems).count())
    s.convert<float>(elements);
  else if (s.plan->strategy.precision == plan::Precision::bf16)
    s.convert<Bf16>(elements);
  else
    s.convert<F16>(elements);
}

Result<void> WeightsWriter::check() {
  State& s = *state_;
  assert(s.next == s.tensors.size());
  if (Result<void> written = s.out->sync(); !written) return written;
  const Result<TensorFile> file = TensorFile::open(s.out->readable_at());
  if (!file) return not_as_written(path(), file.error().what);
  const auto equal = [](const Tensor& a, const Tensor& b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin && a.end == b.end;
  };
  if (file->bytes() != s.bytes || !std::ranges::equal(file->tensors(), s.tensors, equal))
    return not_as_written(path(), "its header");
  RunningSha read;
  std::vector<std::byte> block(std::size_t{1} << 18);
  const std::int64_t all = s.tensors.empty() ? 0 : s.tensors.back().end;
  for (std::int64_t at = 0; at < all;) {
    const auto part = std::span(block).first(
        static_cast<std::size_t>(std::min<std::int64_t>(all - at, static_cast<std::int64_t>(block.size()))));
    if (Result<void> r = file->read(at, part); !r) return not_as_written(path(), r.error().what);
    read.add(part);
    at += static_cast<std::int64_t>(part.size());
  }
  if (read.finish() != s.sha.finish()) return not_as_written(path(), "its tensors");
  return {};
}

Result<void> WeightsWriter::finish() {
  State& s = *state_;
  if (Result<void> named = s.out->finish(); !named) return named;
  // The name, too, is to outlive a power failure; where a file system cannot do that, the file is there all the same.
  if (const int folder = ::open(s.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    static_cast<void>(::fsync(folder));
    ::close(folder);
  }
  return {};
}

fs::path WeightsWriter::path() const {
  return weights_file_in(state_->folder);
}

Bytes WeightsWriter::bytes() const {
  return Bytes{state_->bytes};
}

}  // namespace shard
