// Programs as documents: a Python file's names, the arguments of a launch script's command.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/foreign/document.h"
#include "sim/foreign/foreign_config.h"
#include "traces/base/result.h"

namespace shard::foreign {

/// What a program says, and of what only a run knows the reason.
struct ScriptDocument {
  Value root;                        ///< a table
  std::vector<LeftOut> unread{};     ///< leaves that are not in `root`
  std::vector<std::string> names{};  ///< of a Python file the modules it imports, of a launch the command's words
};

/// Top-level names of a Python file, and under a class of `classes` the keyword arguments of its first call
/// ("/GeminiDDP/pin_memory"); of calls of further classes they are unread, but for those of `beside`. A class is text:
/// "TensorShardStrategy", "AMP_TYPE.NAIVE". Errors as read_python().
[[nodiscard]] Result<ScriptDocument> python_document(std::string_view content, const std::string& where,
                                                     std::span<const std::string_view> classes,
                                                     std::span<const std::string_view> beside = {});

/// The arguments of the command that starts training, each a leaf by its name without dashes ("/num-layers"): true
/// without a value, a list of several. Its launcher's arguments are among them, #SBATCH lines under "/sbatch". Of
/// several commands the one with most arguments in `known`; arguments in `flags` take no value. Without any, what the
/// script hands to another script. Errors as read_shell(); malformed, too, where no command starts anything.
[[nodiscard]] Result<ScriptDocument> launch_document(std::string_view content, const std::string& where,
                                                     std::span<const std::string_view> known,
                                                     std::span<const std::string_view> flags = {});

}  // namespace shard::foreign
