# House rules in one place: language, warnings, output folder, and the two functions that declare targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_program(SHARDSCOPE_CCACHE ccache)
if(SHARDSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SHARDSCOPE_CCACHE})
endif()

# A tenth less to compile than CMake's -O3, and as fast; the kernels, where it is not, ask for -O3 themselves.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

add_library(shardscope_rules INTERFACE)
target_compile_options(shardscope_rules INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wswitch-enum $<$<BOOL:${SHARDSCOPE_WERROR}>:-Werror>>)
# GCC 12 reports overlapping copies in "text" + std::string that do not exist (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(shardscope_rules INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(SHARDSCOPE_GUARDS)
  add_compile_definitions(SHARDSCOPE_GUARDS=1)
endif()
if(SHARDSCOPE_SANITIZE)
  add_compile_options(-fsanitize=${SHARDSCOPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${SHARDSCOPE_SANITIZE})
  # Under sanitizers GCC sees uninitialised reads inside std::regex and std::variant (GCC bug 105562).
  target_compile_options(shardscope_rules INTERFACE -Wno-maybe-uninitialized)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # What is instrumented is not vectorised, whatever a loop asks for (executor/numeric/vectorise.h).
    target_compile_options(shardscope_rules INTERFACE -Wno-unknown-warning-option -Wno-pass-failed)
  endif()
endif()
# What every test sees: known findings inside named libraries of others; nothing of ours is suppressed.
set(SHARDSCOPE_TEST_ENVIRONMENT)
if(SHARDSCOPE_SANITIZE MATCHES "thread")
  set(SHARDSCOPE_TEST_ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/tsan.suppressions")
elseif(SHARDSCOPE_SANITIZE MATCHES "address")
  set(SHARDSCOPE_TEST_ENVIRONMENT "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/lsan.suppressions:print_suppressions=0")
endif()

# Most of a source's time is its headers': SHARDSCOPE_UNITY compiles up to 24 sources of a target at once.
# So what is in an anonymous namespace has a name that says whose it is.
if(SHARDSCOPE_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 24)
  # Said of one source because of another beside it; builds of each source alone still say it.
  target_compile_options(shardscope_rules INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow -Wno-subobject-linkage>)
endif()

# shardscope_once(NAME): a library of what a command does once, however much it works on; a quarter less to compile.
function(shardscope_once name)
  if(SHARDSCOPE_STATIC)  # a download counts more than its compilation; GCC 12 loses track of optionals there
    target_compile_options(shardscope_${name} PRIVATE $<$<CONFIG:Release>:-Os> $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
  else()
    target_compile_options(shardscope_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

include(GNUInstallDirs)
include(ShardscopeHeaderCheck)

# shardscope_library(NAME SOURCES ... HEADERS ... DEPENDS ... PRIVATE_DEPENDS ...)
# One static library per folder, target shardscope_NAME, alias shardscope::NAME, includes from the repository root.
function(shardscope_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  list(TRANSFORM ARG_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE headers)
  if(ARG_SOURCES)
    add_library(shardscope_${name} STATIC ${ARG_SOURCES} ${ARG_HEADERS})
    target_include_directories(shardscope_${name} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/shardscope>)
    target_link_libraries(shardscope_${name} PUBLIC ${ARG_DEPENDS}
      PRIVATE $<BUILD_INTERFACE:shardscope_rules> ${ARG_PRIVATE_DEPENDS})
    target_compile_features(shardscope_${name} PUBLIC cxx_std_20)
  else()
    add_library(shardscope_${name} INTERFACE)
    target_include_directories(shardscope_${name} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/shardscope>)
    target_link_libraries(shardscope_${name} INTERFACE ${ARG_DEPENDS})
    target_compile_features(shardscope_${name} INTERFACE cxx_std_20)
  endif()
  add_library(shardscope::${name} ALIAS shardscope_${name})
  set_target_properties(shardscope_${name} PROPERTIES EXPORT_NAME ${name}
    SHARDSCOPE_HEADERS "${headers}")
  set_property(GLOBAL APPEND PROPERTY SHARDSCOPE_LIBRARIES shardscope_${name})
  if(SHARDSCOPE_TESTS)
    shardscope_header_check(${name} HEADERS ${headers} LINKS ${ARG_PRIVATE_DEPENDS})
  endif()
endfunction()

# Tests are compiled often and run once: what they test keeps its own optimisation.
set(SHARDSCOPE_TEST_OPTIMIZATION "$<IF:$<CONFIG:Release>,-O1,-O0>")
# Of those that compute by themselves what is tested, or read much: they would run twice as long.
set(SHARDSCOPE_COMPUTING_TEST_OPTIMIZATION "$<$<CONFIG:Release>:-O1>")

# shardscope_test(NAME [COMPUTES] SOURCES ... LINKS ... [LABELS label] [APART ...] [DEFINITIONS ...]): one GoogleTest executable, discovered by ctest.
# TEST_DATA (a macro) is the absolute path of tests/. With SHARDSCOPE_UNITY its sources are compiled several at once, but
# for those that stand APART, whose helpers bear the plain names of others', and the headers of most are compiled once.
# What is labelled full or product is declared with SHARDSCOPE_FULL_TESTS alone.
function(shardscope_test name)
  cmake_parse_arguments(ARG "COMPUTES" "" "SOURCES;LINKS;LABELS;APART;DEFINITIONS" ${ARGN})
  set(headers shardscope_test_headers)
  set(optimization ${SHARDSCOPE_TEST_OPTIMIZATION})
  if(ARG_COMPUTES)
    set(headers shardscope_computing_test_headers)
    set(optimization ${SHARDSCOPE_COMPUTING_TEST_OPTIMIZATION})
  endif()
  if(ARG_LABELS MATCHES "full|product" AND NOT SHARDSCOPE_FULL_TESTS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES} ${ARG_APART})
  if(SHARDSCOPE_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_precompile_headers(${name} REUSE_FROM ${headers})
    # What GCC 12 says of its own <string>, once that is precompiled.
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow>)
  endif()
  target_compile_options(${name} PRIVATE ${optimization})
  target_link_libraries(${name} PRIVATE shardscope_rules ${ARG_LINKS} shardscope_test_main GTest::gmock)
  target_compile_definitions(${name} PRIVATE TEST_DATA="${PROJECT_SOURCE_DIR}/tests" ${ARG_DEFINITIONS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # One value each: gtest_discover_tests() flattens lists.
  set(properties)
  if(ARG_LABELS)
    list(APPEND properties LABELS ${ARG_LABELS})
  endif()
  if(SHARDSCOPE_TEST_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT ${SHARDSCOPE_TEST_ENVIRONMENT})
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# shardscope_fuzzer(NAME SOURCES ... LINKS ...): one libFuzzer program in fuzz/ of the build folder, built by the target
# `fuzzers`. tests/fuzz/corpus/NAME, where it exists, holds its first inputs.
function(shardscope_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE shardscope_rules ${ARG_LINKS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()
