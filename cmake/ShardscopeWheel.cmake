# What scikit-build-core puts into the wheel (pyproject.toml): programs where pip puts commands, and their manual pages.
foreach(program IN LISTS SHARDSCOPE_PROGRAMS)
  install(TARGETS ${program} RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
endforeach()
