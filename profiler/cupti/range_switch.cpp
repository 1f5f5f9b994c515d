// NVTX's functions by their numbers; a thread's pushed ranges are its own.
#include "profiler/cupti/range_switch.h"

// Its types, none of its functions.
#define NVTX_NO_IMPL
#include <generated_nvtx_meta.h>

#include <vector>

namespace shard::profiler {
namespace {

template <class Params>
const Params& params(const CUpti_NvtxData& data) {
  return *static_cast<const Params*>(data.functionParams);
}

/// What is wanted and what steps are called is ASCII; of other characters it is enough that they differ from it.
std::string narrow(const wchar_t* text) {
  std::string narrowed;
  for (; text != nullptr && *text != 0; ++text) narrowed += *text < 128 ? static_cast<char>(*text) : '?';
  return narrowed;
}

std::string narrow(const char* text) {
  return text == nullptr ? std::string() : text;
}

/// Of this thread, by domain: ranges that are open.
template <class Open>
std::vector<Open>& stack_of(const void* domain) {
  thread_local std::map<const void*, std::vector<Open>> stacks;
  return stacks[domain];
}

template <class Value>
Value returned(const CUpti_NvtxData& data) {
  return data.functionReturnValue == nullptr ? Value{} : *static_cast<const Value*>(data.functionReturnValue);
}

}  // namespace

std::span<const CUpti_CallbackId> RangeSwitch::functions() {
  static constexpr CUpti_CallbackId kHeard[] = {CUPTI_CBID_NVTX_nvtxRangePushA,
                                                CUPTI_CBID_NVTX_nvtxRangePushW,
                                                CUPTI_CBID_NVTX_nvtxRangePushEx,
                                                CUPTI_CBID_NVTX_nvtxRangePop,
                                                CUPTI_CBID_NVTX_nvtxRangeStartA,
                                                CUPTI_CBID_NVTX_nvtxRangeStartW,
                                                CUPTI_CBID_NVTX_nvtxRangeStartEx,
                                                CUPTI_CBID_NVTX_nvtxRangeEnd,
                                                CUPTI_CBID_NVTX_nvtxDomainRangePushEx,
                                                CUPTI_CBID_NVTX_nvtxDomainRangePop,
                                                CUPTI_CBID_NVTX_nvtxDomainRangeStartEx,
                                                CUPTI_CBID_NVTX_nvtxDomainRangeEnd,
                                                CUPTI_CBID_NVTX_nvtxDomainRegisterStringA,
                                                CUPTI_CBID_NVTX_nvtxDomainRegisterStringW};
  return kHeard;
}

std::string RangeSwitch::text_of(const nvtxEventAttributes_v2* attributes) {
  if (attributes == nullptr) return "";
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: return narrow(attributes->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE: return narrow(attributes->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED: {
      const std::lock_guard lock(mutex_);
      const auto at = registered_.find(attributes->message.registered);
      return at == registered_.end() ? "" : at->second;
    }
    default: return "";
  }
}

RangeSwitch::Open RangeSwitch::open(std::string name) {
  Open range{.name = std::move(name)};
  {
    const std::lock_guard lock(mutex_);
    const auto chosen = chooser_.begins(range.name);
    if (!chosen) return range;
    range.wanted = true;
    range.step = chosen->step;
  }
  hooks_.begun(range.name);
  const std::lock_guard lock(turning_);
  if (++open_ == 1) hooks_.turn(true);
  range.begin_ns = hooks_.now();
  return range;
}

void RangeSwitch::close(const Open& range) {
  if (!range.wanted) return;
  hooks_.ended({range.name, range.begin_ns, hooks_.now(), range.step});
  const std::lock_guard lock(turning_);
  if (--open_ == 0) hooks_.turn(false);
}

void RangeSwitch::push(const void* domain, std::string name) {
  Open range = open(std::move(name));
  if (!range.wanted) range.name.clear();
  stack_of<Open>(domain).push_back(std::move(range));
}

void RangeSwitch::pop(const void* domain) {
  std::vector<Open>& stack = stack_of<Open>(domain);
  if (stack.empty()) return;  // pushed before the recording began
  const Open range = std::move(stack.back());
  stack.pop_back();
  close(range);
}

void RangeSwitch::started(std::uint64_t id, std::string name) {
  Open range = open(std::move(name));
  if (!range.wanted) return;
  const std::lock_guard lock(mutex_);
  started_.insert_or_assign(id, std::move(range));
}

void RangeSwitch::ended(std::uint64_t id) {
  Open range;
  {
    const std::lock_guard lock(mutex_);
    const auto at = started_.find(id);
    if (at == started_.end()) return;
    range = std::move(at->second);
    started_.erase(at);
  }
  close(range);
}

void RangeSwitch::heard(CUpti_CallbackId id, const CUpti_NvtxData& data) {
  if (data.functionParams == nullptr) return;
  switch (static_cast<int>(id)) {
    case CUPTI_CBID_NVTX_nvtxRangePushA: push(nullptr, narrow(params<nvtxRangePushA_params>(data).message)); break;
    case CUPTI_CBID_NVTX_nvtxRangePushW: push(nullptr, narrow(params<nvtxRangePushW_params>(data).message)); break;
    case CUPTI_CBID_NVTX_nvtxRangePushEx:
      push(nullptr, text_of(params<nvtxRangePushEx_params>(data).eventAttrib));
      break;
    case CUPTI_CBID_NVTX_nvtxDomainRangePushEx: {
      const auto& p = params<nvtxDomainRangePushEx_params>(data);
      push(p.domain, text_of(p.core.eventAttrib));
      break;
    }
    case CUPTI_CBID_NVTX_nvtxRangePop: pop(nullptr); break;
    case CUPTI_CBID_NVTX_nvtxDomainRangePop: pop(params<nvtxDomainRangePop_params>(data).domain); break;
    case CUPTI_CBID_NVTX_nvtxRangeStartA:
      started(returned<nvtxRangeId_t>(data), narrow(params<nvtxRangeStartA_params>(data).message));
      break;
    case CUPTI_CBID_NVTX_nvtxRangeStartW:
      started(returned<nvtxRangeId_t>(data), narrow(params<nvtxRangeStartW_params>(data).message));
      break;
    case CUPTI_CBID_NVTX_nvtxRangeStartEx:
      started(returned<nvtxRangeId_t>(data), text_of(params<nvtxRangeStartEx_params>(data).eventAttrib));
      break;
    case CUPTI_CBID_NVTX_nvtxDomainRangeStartEx:
      started(returned<nvtxRangeId_t>(data), text_of(params<nvtxDomainRangeStartEx_params>(data).core.eventAttrib));
      break;
    case CUPTI_CBID_NVTX_nvtxRangeEnd: ended(params<nvtxRangeEnd_params>(data).id); break;
    case CUPTI_CBID_NVTX_nvtxDomainRangeEnd: ended(params<nvtxDomainRangeEnd_params>(data).core.id); break;
    case CUPTI_CBID_NVTX_nvtxDomainRegisterStringA:
    case CUPTI_CBID_NVTX_nvtxDomainRegisterStringW: {
      const void* const handle = returned<nvtxStringHandle_t>(data);
      const bool wide = static_cast<int>(id) == CUPTI_CBID_NVTX_nvtxDomainRegisterStringW;
      const char* const text = params<nvtxDomainRegisterStringA_params>(data).string;
      const std::lock_guard lock(mutex_);
      registered_[handle] = wide ? narrow(reinterpret_cast<const wchar_t*>(text)) : narrow(text);
      break;
    }
    default: break;
  }
}

}  // namespace shard::profiler
