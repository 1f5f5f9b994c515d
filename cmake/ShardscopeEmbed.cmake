# Embeds text files in a library: an array of {file name without ending, text}, sorted by name.
# As a script (cmake -P, with OUTPUT, HEADER, NAMESPACE, TYPE, FUNCTION, FILES separated by "|") it writes the source.

# shardscope_embed(OUTPUT file.cpp HEADER path.h NAMESPACE n TYPE t FUNCTION f FILES ...): HEADER declares
# `std::span<const TYPE> FUNCTION();` and TYPE is an aggregate of two string views: name and text.
function(shardscope_embed)
  cmake_parse_arguments(ARG "" "OUTPUT;HEADER;NAMESPACE;TYPE;FUNCTION" "FILES" ${ARGN})
  list(SORT ARG_FILES)
  list(JOIN ARG_FILES "|" files)
  add_custom_command(
    OUTPUT ${ARG_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${ARG_OUTPUT} -DHEADER=${ARG_HEADER} -DNAMESPACE=${ARG_NAMESPACE}
            -DTYPE=${ARG_TYPE} -DFUNCTION=${ARG_FUNCTION} "-DFILES=${files}"
            -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPENDS ${ARG_FILES} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    VERBATIM)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  string(REPLACE "|" ";" files "${FILES}")
  set(entries "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WLE)
    file(READ "${file}" text)
    string(APPEND entries "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  list(LENGTH files count)
  file(WRITE "${OUTPUT}" "// Files embedded by cmake/ShardscopeEmbed.cmake.
#include <array>

#include \"${HEADER}\"

namespace ${NAMESPACE} {

std::span<const ${TYPE}> ${FUNCTION}() {
  static constexpr std::array<${TYPE}, ${count}> kFiles{{
${entries}  }};
  return kFiles;
}

}  // namespace ${NAMESPACE}
")
endif()
