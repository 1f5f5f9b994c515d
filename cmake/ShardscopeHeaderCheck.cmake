# Compiles every header that a library lists by itself, so that each includes what it uses.

# shardscope_header_check(): one object library header_check_NAME per shardscope_library, each built with the tests.
# Headers of a part that is left out are not in a library, and so are not compiled.
function(shardscope_header_check)
  get_property(libraries GLOBAL PROPERTY SHARDSCOPE_LIBRARIES)
  foreach(library IN LISTS libraries)
    get_target_property(headers ${library} SHARDSCOPE_HEADERS)
    if(NOT headers)
      continue()
    endif()
    set(units)
    foreach(header IN LISTS headers)
      cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
      string(REPLACE "/" "_" stem ${name})
      set(unit ${PROJECT_BINARY_DIR}/header_check/${stem}.cpp)
      file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${name}\"  // alone, and twice:\n#include \"${name}\"\n")
      list(APPEND units ${unit})
    endforeach()
    string(REPLACE "shardscope_" "header_check_" check ${library})
    add_library(${check} OBJECT ${units})
    target_link_libraries(${check} PRIVATE shardscope_rules ${library} $<TARGET_PROPERTY:${library},SHARDSCOPE_PRIVATE_DEPENDS>)
    # Only the front end matters here.
    target_compile_options(${check} PRIVATE -O0 -g0)
  endforeach()
endfunction()
