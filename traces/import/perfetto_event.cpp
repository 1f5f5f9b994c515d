// Field numbers are those of protos/perfetto/trace in github.com/google/perfetto.
#include "traces/import/perfetto_event.h"

#include <cstring>

#include "traces/base/protobuf.h"
#include "traces/import/names.h"

namespace shard::import {
namespace {

/// A repeated integer field, packed or not.
template <class T>
void append_integers(const ProtoField& field, std::vector<T>& values, Builder& builder) {
  builder.charge(8 * (field.delimited ? field.bytes.size() : 1));
  if (!field.delimited) {
    values.push_back(static_cast<T>(field.value));
    return;
  }
  std::string_view rest = field.bytes;
  std::uint64_t value = 0;
  while (!rest.empty() && ProtoReader::take_varint(rest, value)) values.push_back(static_cast<T>(value));
}

void append_fixed(const ProtoField& field, std::vector<std::uint64_t>& values) {
  if (!field.delimited) {
    values.push_back(field.value);
    return;
  }
  for (std::string_view rest = field.bytes; rest.size() >= 8; rest.remove_prefix(8)) {
    std::uint64_t value = 0;
    std::memcpy(&value, rest.data(), 8);
    values.push_back(value);
  }
}

/// What our own export writes beside the name.
bool annotation(std::string_view message, const PerfettoSequence& sequence, const Builder& builder, Span& span) {
  ProtoReader reader(message);
  ProtoField field;
  std::string_view name, text;
  std::optional<std::int64_t> value;
  while (reader.next(field)) {
    if (field.number == 1) name = builder.loaded.trace.name_of(interned(sequence.annotations, field.value));
    if (field.number == 10) name = field.bytes;
    if (field.number == 3 || field.number == 4) value = field.integer();
    if (field.number == 6) text = field.bytes;
  }
  if (!reader.ok()) return false;
  if (value && name == "op") span.op = OpId{clamp32(*value)};
  if (value && name == "unit") span.unit = UnitId{clamp32(*value)};
  if (value && name == "step") span.step = clamp32(*value);
  if (value && name == "micro_step") span.micro_step = clamp32(*value);
  if (value && name == "bytes") span.bytes = *value;
  if (value && name == "waiting_ns") span.waiting_ns = *value;
  if (name == "phase") span.phase = phase_named(text).value_or(span.phase);
  if (name == "part") span.part = part_named(text).value_or(span.part);
  if (name == "activity") span.activity = activity_named(text).value_or(span.activity);
  return true;
}

}  // namespace

bool take_defaults(std::string_view message, PerfettoSequence& sequence, Builder& builder) {
  ProtoReader reader(message);
  ProtoField field;
  while (reader.next(field)) {
    if (field.number == 58) sequence.default_clock = static_cast<std::uint32_t>(field.value);
    if (field.number != 11 || !field.delimited) continue;
    ProtoReader event(field.bytes);
    ProtoField member;
    while (event.next(member)) {
      if (member.number == 11) sequence.default_track = member.value;
      if (member.number == 31) append_integers(member, sequence.default_counters, builder);
    }
    if (!event.ok()) return false;
  }
  return reader.ok();
}

bool take_names(std::string_view message, PerfettoSequence& sequence, Builder& builder) {
  ProtoReader reader(message);
  ProtoField field;
  while (reader.next(field)) {
    auto* table = field.number == 1   ? &sequence.categories
                  : field.number == 2 ? &sequence.names
                  : field.number == 3 ? &sequence.annotations
                                      : nullptr;
    if (table == nullptr || !field.delimited) continue;
    ProtoReader entry(field.bytes);
    ProtoField member;
    std::uint64_t iid = 0;
    std::string_view name;
    while (entry.next(member)) {
      if (member.number == 1) iid = member.value;
      if (member.number == 2) name = member.bytes;
    }
    if (!entry.ok()) return false;
    builder.charge(32);
    (*table)[iid] = builder.name(name);
  }
  return reader.ok();
}

bool parse_event(std::string_view message, const PerfettoSequence& sequence, Builder& builder, TrackEvent& event) {
  ProtoReader reader(message);
  ProtoField field;
  while (reader.next(field)) {
    switch (field.number) {
      case 9: event.type = field.integer(); break;
      case 11: event.track = field.value; break;
      case 10: event.name = interned(sequence.names, field.value); break;
      case 23: event.name = builder.name(field.bytes); break;
      case 3:
        if (!event.category_id.valid() && !field.delimited)
          event.category_id = interned(sequence.categories, field.value);
        break;
      case 22:
        if (event.category.empty()) event.category = field.bytes;
        break;
      case 4:
        if (field.delimited && !annotation(field.bytes, sequence, builder, event.described)) return false;
        break;
      case 30:
        event.integer_value = field.integer();
        event.value = static_cast<double>(field.integer());
        break;
      case 44: event.value = field.real(); break;
      case 47:
      case 36:
        field.number == 47 ? append_fixed(field, event.flows) : append_integers(field, event.flows, builder);
        break;
      case 48:
      case 42:
        field.number == 48 ? append_fixed(field, event.terminating_flows)
                           : append_integers(field, event.terminating_flows, builder);
        break;
      case 31: append_integers(field, event.counters, builder); break;
      case 12: append_integers(field, event.counter_values, builder); break;
      case 1: event.delta_us = field.integer(); break;
      case 16: event.absolute_us = field.integer(); break;
      case 6: event.legacy = field.bytes; break;
      default: break;
    }
  }
  if (event.category.empty()) event.category = builder.loaded.trace.name_of(event.category_id);
  return reader.ok();
}

}  // namespace shard::import
