# SHARDSCOPE_STATIC: programs that need the C library and nothing else, which run wherever that is not older (make wheel).

# Before packages are looked for: archives come first.
if(SHARDSCOPE_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  # What nothing calls is left out, and equal functions are one.
  add_compile_options($<$<CONFIG:Release>:-ffunction-sections> $<$<CONFIG:Release>:-fdata-sections>)
  add_link_options(-static-libstdc++ -static-libgcc -s -fuse-ld=gold -Wl,--gc-sections,--icf=safe)
endif()

# shardscope_link_archive(TARGET NAME): links libNAME.a where TARGET, of a package that has a name for its shared library
# alone, is linked.
function(shardscope_link_archive target name)
  if(NOT SHARDSCOPE_STATIC)
    return()
  endif()
  find_library(SHARDSCOPE_ARCHIVE_${name} lib${name}.a REQUIRED)
  mark_as_advanced(SHARDSCOPE_ARCHIVE_${name})
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} ${SHARDSCOPE_ARCHIVE_${name}})
  endforeach()
endfunction()
