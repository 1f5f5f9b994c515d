// Calls of NCCL, each checked. Built without its header, it says so instead.
#include "executor/cuda/module/real_nccl.h"

#include "traces/base/nvidia_libraries.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

#include <cassert>
#include <cstring>
#endif

namespace shard::cuda {
#if __has_include(<nccl.h>)
namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(NcclId));

ncclComm_t raw(NcclComm comm) {
  return reinterpret_cast<ncclComm_t>(comm);
}
cudaStream_t raw(Stream stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}
std::size_t size_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}
ncclDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return ncclFloat32;
    case Dtype::i32: return ncclInt32;
    case Dtype::f16: return ncclFloat16;
    case Dtype::bf16: return ncclBfloat16;
    case Dtype::i64: return ncclInt64;
  }
  assert(false && "a type of no plan");
  return ncclFloat32;
}

class RealNccl final : public Nccl {
 public:
  Result<void> load(const OpenLibrary& library) {
    Result<void> bound;
    const auto load = [&](const char* symbol, auto& target) {
      if (bound) bound = bind(library, symbol, target);
    };
    load("ncclGetVersion", get_version_);
    load("ncclGetErrorString", error_string_);
    load("ncclGetLastError", last_error_);
    load("ncclGetUniqueId", unique_id_);
    load("ncclCommInitRankConfig", init_);
    load("ncclCommGetAsyncError", async_error_);
    load("ncclCommAbort", abort_);
    load("ncclCommFinalize", finalize_);
    load("ncclCommDestroy", destroy_);
    load("ncclGroupStart", group_start_);
    load("ncclGroupEnd", group_end_);
    load("ncclAllGather", all_gather_);
    load("ncclReduceScatter", reduce_scatter_);
    load("ncclAllReduce", all_reduce_);
    load("ncclBroadcast", broadcast_);
    load("ncclReduce", reduce_);
    load("ncclSend", send_);
    load("ncclRecv", receive_);
    if (!bound) return bound;
    int version = 0;
    if (const Result<void> done = checked(get_version_(&version), "ncclGetVersion", nullptr); !done) return done;
    version_ = version;
    return {};
  }

  std::int32_t version() const override { return version_; }

  Result<NcclId> unique_id() override {
    ncclUniqueId made{};
    if (const auto done = checked(unique_id_(&made), "ncclGetUniqueId", nullptr); !done) return done.error();
    NcclId id;
    std::memcpy(id.bytes.data(), &made, sizeof made);
    return id;
  }
  Result<NcclComm> begin(std::int32_t ranks, const NcclId& id, std::int32_t rank) override {
    ncclUniqueId shared{};
    std::memcpy(&shared, id.bytes.data(), sizeof shared);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    if (const auto done = checked(init_(&comm, ranks, shared, rank, &config), "ncclCommInitRankConfig", comm); !done)
      return done.error();
    return reinterpret_cast<NcclComm>(comm);
  }
  Result<bool> is_ready(NcclComm comm) override {
    ncclResult_t state = ncclSuccess;
    Result<void> done = checked(async_error_(raw(comm), &state), "ncclCommGetAsyncError", raw(comm));
    if (done) done = checked(state, "NCCL", raw(comm));
    if (!done) return done.error();
    return state == ncclSuccess;
  }
  void abort(NcclComm comm) override { abort_(raw(comm)); }
  Result<void> finish(NcclComm comm) override { return checked(finalize_(raw(comm)), "ncclCommFinalize", raw(comm)); }
  Result<void> destroy(NcclComm comm) override { return checked(destroy_(raw(comm)), "ncclCommDestroy", nullptr); }
  Result<void> group_start() override { return checked(group_start_(), "ncclGroupStart", nullptr); }
  Result<void> group_end() override { return checked(group_end_(), "ncclGroupEnd", nullptr); }

  Result<void> all_gather(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                          Dtype dtype) override {
    return checked(all_gather_(in, out, size_of(count), type_of(dtype), raw(comm), raw(stream)), "ncclAllGather",
                   raw(comm));
  }
  Result<void> reduce_scatter(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                              Dtype dtype) override {
    return checked(reduce_scatter_(in, out, size_of(count), type_of(dtype), ncclSum, raw(comm), raw(stream)),
                   "ncclReduceScatter", raw(comm));
  }
  Result<void> all_reduce(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                          Dtype dtype) override {
    return checked(all_reduce_(in, out, size_of(count), type_of(dtype), ncclSum, raw(comm), raw(stream)),
                   "ncclAllReduce", raw(comm));
  }
  Result<void> broadcast(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                         Dtype dtype, std::int32_t root) override {
    return checked(broadcast_(in, out, size_of(count), type_of(dtype), root, raw(comm), raw(stream)), "ncclBroadcast",
                   raw(comm));
  }
  Result<void> reduce(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                      Dtype dtype, std::int32_t root) override {
    return checked(reduce_(in, out, size_of(count), type_of(dtype), ncclSum, root, raw(comm), raw(stream)),
                   "ncclReduce", raw(comm));
  }
  Result<void> send(NcclComm comm, Stream stream, const std::byte* in, std::int64_t count, Dtype dtype,
                    std::int32_t peer) override {
    return checked(send_(in, size_of(count), type_of(dtype), peer, raw(comm), raw(stream)), "ncclSend", raw(comm));
  }
  Result<void> receive(NcclComm comm, Stream stream, std::byte* out, std::int64_t count, Dtype dtype,
                       std::int32_t peer) override {
    return checked(receive_(out, size_of(count), type_of(dtype), peer, raw(comm), raw(stream)), "ncclRecv", raw(comm));
  }

 private:
  /// What a communicator that does not block has still to do is no error.
  Result<void> checked(ncclResult_t status, const char* call, ncclComm_t comm) const {
    if (status == ncclSuccess || status == ncclInProgress) return {};
    std::string what = std::string(call) + ": " + error_string_(status);
    if (const char* more = last_error_(comm); more != nullptr && *more != '\0') what += ", " + std::string(more);
    return Error{.code = Errc::unavailable, .what = what, .where = "", .help = "NCCL_DEBUG=WARN says more"};
  }

  std::int32_t version_ = 0;
  decltype(&ncclGetVersion) get_version_ = nullptr;
  decltype(&ncclGetErrorString) error_string_ = nullptr;
  decltype(&ncclGetLastError) last_error_ = nullptr;
  decltype(&ncclGetUniqueId) unique_id_ = nullptr;
  decltype(&ncclCommInitRankConfig) init_ = nullptr;
  decltype(&ncclCommGetAsyncError) async_error_ = nullptr;
  decltype(&ncclCommAbort) abort_ = nullptr;
  decltype(&ncclCommFinalize) finalize_ = nullptr;
  decltype(&ncclCommDestroy) destroy_ = nullptr;
  decltype(&ncclGroupStart) group_start_ = nullptr;
  decltype(&ncclGroupEnd) group_end_ = nullptr;
  decltype(&ncclAllGather) all_gather_ = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter_ = nullptr;
  decltype(&ncclAllReduce) all_reduce_ = nullptr;
  decltype(&ncclBroadcast) broadcast_ = nullptr;
  decltype(&ncclReduce) reduce_ = nullptr;
  decltype(&ncclSend) send_ = nullptr;
  decltype(&ncclRecv) receive_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Nccl>> open_real_nccl(std::string* path) {
  const Result<OpenLibrary> library = open_library("libnccl.so.2", library_folders());
  if (!library) return library.error();
  if (path != nullptr) *path = library->path;
  auto nccl = std::make_unique<RealNccl>();
  if (const Result<void> loaded = nccl->load(*library); !loaded) return loaded.error();
  return std::unique_ptr<Nccl>(std::move(nccl));
}
#else

Result<std::unique_ptr<Nccl>> open_real_nccl(std::string*) {
  return Error{.code = Errc::unavailable,
               .what = "this build knows no NCCL: nccl.h was not found",
               .where = "",
               .help = "install NCCL's header (libnccl-dev), then configure and build again"};
}
#endif

}  // namespace shard::cuda
