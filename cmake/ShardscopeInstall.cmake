# Install rules: programs to bin/, their manual pages and completions, libshardscope.so with the public headers, and a package
# for find_package(shardscope). The static libraries inside are a component of their own, which is left out unless it is
# named: cmake --install B --component libraries.
include(CMakePackageConfigHelpers)

# shardscope_install_interface(): libshardscope.so, its headers and its target, under CMAKE_INSTALL_LIBDIR and _INCLUDEDIR.
# Words behind it are install's, of every rule: COMPONENT NAME.
function(shardscope_install_interface)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardscope)
  install(TARGETS shardscope_api EXPORT shardscopeInterface
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${ARGN}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  get_target_property(headers shardscope_api SHARDSCOPE_HEADERS)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardscope ${ARGN})
  get_target_property(included shardscope_api SHARDSCOPE_INCLUDED)
  foreach(header IN LISTS included)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardscope/${folder} ${ARGN})
  endforeach()
  install(EXPORT shardscopeInterface NAMESPACE shardscope:: DESTINATION ${package_dir} ${ARGN})
endfunction()

# shardscope_install_package(): what find_package(shardscope) reads. Words behind it as above.
function(shardscope_install_package)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardscope)
  set(SHARDSCOPE_SQLITE OFF)
  if(TARGET SQLite::SQLite3)
    set(SHARDSCOPE_SQLITE ON)
  endif()
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/shardscopeConfig.cmake.in
    ${PROJECT_BINARY_DIR}/shardscopeConfig.cmake INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/shardscopeConfig.cmake ${PROJECT_BINARY_DIR}/shardscopeConfigVersion.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindLibZip.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindoneDNN.cmake
    DESTINATION ${package_dir} ${ARGN})
endfunction()

# shardscope_install(): everything that shardscope_library() declared and every program in bin/ of the build folder.
function(shardscope_install)
  get_property(libraries GLOBAL PROPERTY SHARDSCOPE_LIBRARIES)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardscope)
  install(TARGETS ${libraries} EXPORT shardscopeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT libraries EXCLUDE_FROM_ALL)
  foreach(library IN LISTS libraries)
    get_target_property(headers ${library} SHARDSCOPE_HEADERS)
    foreach(header IN LISTS headers)
      cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
      cmake_path(GET name PARENT_PATH folder)
      install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardscope/${folder})
    endforeach()
  endforeach()
  if(TARGET shardscope_api)
    shardscope_install_interface()
  endif()
  foreach(program IN LISTS SHARDSCOPE_PROGRAMS)
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endforeach()
  shardscope_install_shells()
  install(EXPORT shardscopeTargets NAMESPACE shardscope:: DESTINATION ${package_dir}
    COMPONENT libraries EXCLUDE_FROM_ALL)
  shardscope_install_package()
endfunction()

# Manual pages and completions, which the programs that are being installed write themselves. Debian's shells look for
# zsh's in vendor-completions under /usr, in site-functions under /usr/local and elsewhere.
function(shardscope_install_shells)
  set(shells ${PROJECT_BINARY_DIR}/shells)
  install(CODE "
    file(REMOVE_RECURSE \"${shells}\")
    file(MAKE_DIRECTORY \"${shells}\")
    execute_process(COMMAND \"$<TARGET_FILE:shardscope>\" man --all \"${shells}/man1\" COMMAND_ERROR_IS_FATAL ANY)
    foreach(shell IN ITEMS bash zsh)
      execute_process(COMMAND \"$<TARGET_FILE:shardscope>\" completion \${shell}
        OUTPUT_FILE \"${shells}/\${shell}\" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    set(zsh_functions site-functions)
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
      set(zsh_functions vendor-completions)
    endif()
    set(share \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
    file(INSTALL \"${shells}/man1\" DESTINATION \"\${share}/man\")
    file(INSTALL \"${shells}/bash\" DESTINATION \"\${share}/bash-completion/completions\" RENAME shardscope)
    file(INSTALL \"${shells}/zsh\" DESTINATION \"\${share}/zsh/\${zsh_functions}\" RENAME _shardscope)
  ")
endfunction()
