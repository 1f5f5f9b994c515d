// Opcodes that would call something: nothing is called; the call is dropped, or kept as data.
#include "traces/import/pickle.h"

namespace shard::import {

bool PickleReader::make_object(int opcode) {
  std::uint64_t n = 0;
  std::size_t from = 0;
  std::string ignored;
  const auto replace = [&](std::size_t count) {  // `count` values by an inert one
    if (!need(count)) return false;
    stack_.resize(stack_.size() - count);
    return push({Kind::inert, 0});
  };
  switch (opcode) {
    case 'c': return line(ignored) && line(ignored) && push({Kind::inert, 0});  // GLOBAL
    case 0x93: return replace(2);                                               // STACK_GLOBAL
    case 'R':                                                                   // REDUCE
    case 0x81: return replace(2);                                               // NEWOBJ
    case 0x92: return replace(3);                                               // NEWOBJ_EX
    case 'b':                                                                   // BUILD
      if (!need(2)) return false;
      stack_.pop_back();
      return true;
    case 'i':  // INST
      if (!line(ignored) || !line(ignored)) return false;
      [[fallthrough]];
    case 'o':  // OBJ
      if (!pop_mark(from)) return false;
      stack_.resize(from);
      return push({Kind::inert, 0});
    case 'P': return line(ignored) && push({Kind::inert, 0});  // PERSID
    case 'Q': return replace(1);                               // BINPERSID
    case 0x82: return number(1, n) && push({Kind::inert, 0});  // EXT1
    case 0x83: return number(2, n) && push({Kind::inert, 0});  // EXT2
    case 0x84: return number(4, n) && push({Kind::inert, 0});  // EXT4
    case 0x97: return push({Kind::inert, 0});                  // NEXT_BUFFER
    case 0x98: return need(1);                                 // READONLY_BUFFER
    default: return fail("holds no opcode but " + std::to_string(opcode));
  }
}

bool PickleReader::push_global(const std::string& module, const std::string& name) {
  const Text text{characters_.size(), module.size() + 1 + name.size()};
  characters_ += module + '.' + name;
  texts_.push_back(text);
  return charge(text.size + sizeof(Text)) && push({Kind::global, static_cast<std::int64_t>(texts_.size() - 1)});
}

bool PickleReader::keep_object(int opcode) {
  const auto object = [&](std::size_t count) {  // of a callable and `count` - 1 values of arguments
    if (!need(count)) return false;
    for (std::size_t i = count; i < 3; ++i) stack_.emplace_back();
    return push_container(Kind::object, stack_.size() - 3);
  };
  switch (opcode) {
    case 'c': {  // GLOBAL
      std::string module, name;
      return line(module) && line(name) && push_global(module, name);
    }
    case 0x93: {  // STACK_GLOBAL
      if (!need(2)) return false;
      const Value name = stack_.back(), module = stack_[stack_.size() - 2];
      if (module.kind() != Kind::string || name.kind() != Kind::string) return fail("names a class by no string");
      stack_.resize(stack_.size() - 2);
      return push_global(std::string(text(module)), std::string(text(name)));
    }
    case 'R':                     // REDUCE
    case 0x81: return object(2);  // NEWOBJ
    case 0x92:                    // NEWOBJ_EX: arguments with names are put in the state's place
      return need(3) && push_container(Kind::object, stack_.size() - 3);
    case 'b': {  // BUILD
      if (!need(2)) return false;
      const Value state = stack_.back();
      stack_.pop_back();
      if (stack_.back().kind() == Kind::object)
        containers_[static_cast<std::size_t>(stack_.back().payload())][2] = state;
      return true;
    }
    case 'Q': return need(1) && push_container(Kind::reference, stack_.size() - 1);  // BINPERSID
    default: return make_object(opcode);
  }
}

std::string_view PickleReader::name(Value value) const {
  if (value.kind() != Kind::global) return {};
  const Text& text = texts_[static_cast<std::size_t>(value.payload())];
  return std::string_view(characters_).substr(text.at, text.size);
}

std::optional<PickleReader::Made> PickleReader::made(Value value) const {
  if (value.kind() != Kind::object) return std::nullopt;
  const std::vector<Value>& all = containers_[static_cast<std::size_t>(value.payload())];
  return Made{.callable = all[0], .arguments = all[1], .state = all[2], .items = std::span(all).subspan(3)};
}

}  // namespace shard::import
