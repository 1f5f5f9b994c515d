# What scikit-build-core puts into the wheel (pyproject.toml): the programs, where pip puts commands.
foreach(program IN LISTS SHARDSCOPE_PROGRAMS)
  install(TARGETS ${program} RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
endforeach()
