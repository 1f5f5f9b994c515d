# Compiles every header that a library lists by itself, so that each includes what it uses.

# shardscope_header_check(NAME HEADERS ... LINKS ...): the object library header_check_NAME. Built with everything else
# where SHARDSCOPE_HEADER_CHECK is on (presets dev and asan: they read every header once more), else by its name.
function(shardscope_header_check library)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINKS" ${ARGN})
  set(units)
  foreach(header IN LISTS ARG_HEADERS)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    string(REPLACE "/" "_" stem ${name})
    set(unit ${PROJECT_BINARY_DIR}/header_check/${stem}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${name}\"  // alone, and twice:\n#include \"${name}\"\n")
    list(APPEND units ${unit})
  endforeach()
  if(units)
    add_library(header_check_${library} OBJECT ${units})
    set_target_properties(header_check_${library} PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(header_check_${library} PRIVATE shardscope_rules shardscope_${library} ${ARG_LINKS})
    if(NOT SHARDSCOPE_HEADER_CHECK)
      set_target_properties(header_check_${library} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    # Only the front end matters here.
    target_compile_options(header_check_${library} PRIVATE -O0 -g0)
  endif()
endfunction()
