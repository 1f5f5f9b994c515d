// Functions that nobody knows, made when somebody asks for one by its name.
#pragma once

namespace shard::standin {

/// One that, when it is called, answers as unknown.cpp says, and puts its name into the report. The same for the same
/// name; nullptr where the system gives no memory to execute. Synchronised.
[[nodiscard]] void* made_up_function(const char* name);

}  // namespace shard::standin
