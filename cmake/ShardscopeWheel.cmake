# What scikit-build-core puts into wheels, a component each. `wheel` (pyproject.toml): the programs, where pip puts commands.
# `train` (python/train/pyproject.toml): shardscope-train and the C++ interface as a prefix of their own inside the package,
# where auditwheel can say in them where their libraries are.
foreach(program IN LISTS SHARDSCOPE_PROGRAMS)
  if(NOT program STREQUAL shardscope-train)
    install(TARGETS ${program} RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
  endif()
endforeach()
if(TARGET shardscope_api)
  include(ShardscopeInstall)
  set(CMAKE_INSTALL_LIBDIR shardscope_train/lib)
  set(CMAKE_INSTALL_INCLUDEDIR shardscope_train/include)
  # A wheel has no links: three names would be three copies.
  set_property(TARGET shardscope_api PROPERTY VERSION)
  set_property(TARGET shardscope_api PROPERTY SOVERSION)
  install(TARGETS shardscope-train RUNTIME DESTINATION shardscope_train/bin COMPONENT train)
  shardscope_install_interface(COMPONENT train)
  shardscope_install_package(COMPONENT train)
endif()
