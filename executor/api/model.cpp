// Models of the public interface.
#include <shardscope/model.h>

#include "executor/api/impl.h"
#include "sim/cli/uncaught.h"
#include "sim/model/read_model.h"

namespace shardscope {

Result<Model> Model::open(const std::string& what) {
  return shard::cli::guarded([&]() -> Result<Model> {
    Result<shard::model::Model> model = shard::model::read_model(what);
    if (!model) return model.error();
    return Model(std::make_shared<const Impl>(Impl{.argument = what, .model = std::move(*model)}));
  });
}

const std::string& Model::name() const {
  return impl_->model.name;
}
std::int64_t Model::parameter_elements() const {
  return impl_->model.parameter_elements();
}
std::int64_t Model::vocabulary() const {
  return impl_->model.vocabulary;
}
std::int64_t Model::longest_sequence() const {
  return impl_->model.max_sequence;
}

}  // namespace shardscope
