# SPDX-License-Identifier: Apache-2.0
# How headlab's own targets are compiled, and the functions that the folders define them with. The
# sanitizer presets add -Wno-maybe-uninitialized, because with -fsanitize GCC 12 sees uninitialised
# members in <regex> that are none. Their debug information is line numbers alone, and their cpu
# backend goes without AVX-512 (HWY_BROKEN_TARGETS): instrumented code takes minutes to compile for
# each instruction set, and all run the same source, which the other presets test on all of them.

add_library(headlab_flags INTERFACE)
set(headlab_warnings -Wall -Wextra -Wconversion -Wshadow
  # Session{.threads = 2} leaves the other fields at their defaults on purpose.
  -Wno-missing-field-initializers)
# GCC 12 takes the buffer of a short string for that of a long one where + is inlined.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND headlab_warnings -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(HEADLAB_WERROR)
  list(APPEND headlab_warnings -Werror)
endif()
set(headlab_arithmetic
  # Results are the same bits whatever the optimiser does, so it may not fuse a * b + c where the
  # source does not say fma: whether it would depends on the target, the level and the inlining.
  -ffp-contract=off
  # Nothing reads errno or floating-point traps; without them sqrt and comparisons vectorise. Neither
  # changes a value.
  -fno-math-errno -fno-trapping-math)
target_compile_options(headlab_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wpedantic;${headlab_warnings};${headlab_arithmetic}>"
  # The host's half of a .cu file goes the same way, without -Wpedantic: nvcc's own lines offend it.
  # The draws have the bits of the CPU's: quotients and roots are rounded correctly and subnormal numbers
  # stay. These are nvcc's defaults, named so that CUDAFLAGS with --use_fast_math changes none of them.
  # Line numbers, which cost no speed, are for profilers.
  "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-ftz=false;-prec-div=true;-prec-sqrt=true;-lineinfo;-Xptxas=-v;$<$<BOOL:${HEADLAB_WERROR}>:-Werror=all-warnings>>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=$<JOIN:${headlab_warnings};${headlab_arithmetic},$<COMMA>>>"
  # The reference backend is never tuned; the cpu backend raises this for its own files.
  "$<$<COMPILE_LANGUAGE:CXX>:$<IF:$<BOOL:$<TARGET_PROPERTY:HEADLAB_NOT_OPTIMISED>>,-O0,$<$<CONFIG:Release>:-O2>>>")

# headlab_sources(RESULT FOLDER...): every .cpp file below the folders (of the calling CMakeLists.txt)
# that is not a test.
function(headlab_sources result)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE patterns)
  list(TRANSFORM patterns APPEND /*.cpp)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${patterns})
  list(FILTER files EXCLUDE REGEX "\\.test\\.cpp$")
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# headlab_join_sources(TARGET): with CMAKE_UNITY_BUILD, as in the presets, up to HEADLAB_UNIT_FILES files
# of one folder are compiled as one, which takes a quarter of the time: most of it goes into headers
# and templates that the files share. Of the product, a folder of the second level (engine/scenario,
# validation/theory) is joined with those below it; of tests, each folder is alone. A name in an
# anonymous namespace is therefore unique among them. Files with flags of their own are compiled
# alone; all are with -D CMAKE_UNITY_BUILD=OFF.
function(headlab_join_sources target)
  get_target_property(sources ${target} SOURCES)
  set(groups)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(NOT source MATCHES "\\.test\\.cpp$")
      string(REGEX REPLACE "^([^/]+/[^/]+)/.*" "\\1" folder ${folder})
    endif()
    string(MAKE_C_IDENTIFIER ${folder} group)
    list(APPEND groups ${group})
    list(APPEND files_${group} ${source})
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    list(LENGTH files_${group} count)
    math(EXPR units "(${count} + ${HEADLAB_UNIT_FILES} - 1) / ${HEADLAB_UNIT_FILES}")
    set(index 0)
    foreach(source IN LISTS files_${group})
      math(EXPR unit "${index} * ${units} / ${count}")
      math(EXPR index "${index} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${unit})
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# headlab_precompile(TARGET HEADERS...): the standard library and the headers given are parsed once for the
# target. Files with flags of their own cannot use it: SKIP_PRECOMPILE_HEADERS. All headers are parsed again
# with -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON.
function(headlab_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <atomic> <chrono> <cmath> <filesystem> <fstream> <functional> <iostream> <map> <memory>
    <mutex> <numbers> <numeric> <optional> <random> <span> <sstream> <string> <thread> <utility> <variant>
    <vector> ${ARGN})
endfunction()

# headlab_library(kernels SOURCES...): the static library headlab_kernels, headlab::kernels outside.
function(headlab_library name)
  add_library(headlab_${name} STATIC ${ARGN})
  add_library(headlab::${name} ALIAS headlab_${name})
  set_target_properties(headlab_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(headlab_${name} PUBLIC cxx_std_20)
  # One include root, so that #include "engine/run/run.h" reads the same here and where it is installed.
  target_include_directories(headlab_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/headlab>)
  target_link_libraries(headlab_${name} PRIVATE $<BUILD_INTERFACE:headlab_flags>)
  headlab_join_sources(headlab_${name})
endfunction()

# headlab_tests(engine LIBRARIES ... [SOURCES ...]): the program engine_tests of the sources, or of every
# *.test.cpp below the folder, each of its cases a CTest with that name as its label. Cases are found
# when the tests run, not when they are built, so that a build does not execute anything. With
# HEADLAB_TEST_SHARDS a CTest is one of so many shares of the cases: with sanitizers a program takes
# longer to start and to end than most cases do. The tests' own code is not optimised, which halves its
# compile time. OPTIMISED is for tests that spend their time computing reference values themselves.
function(headlab_tests folder)
  if(NOT HEADLAB_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg OPTIMISED "" "LIBRARIES;SOURCES")
  if(NOT arg_SOURCES)
    file(GLOB_RECURSE arg_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.test.cpp)
  endif()
  if(HEADLAB_TESTS_WITHOUT)
    list(FILTER arg_SOURCES EXCLUDE REGEX "${HEADLAB_TESTS_WITHOUT}")
  endif()
  include(GoogleTest)
  add_executable(${folder}_tests ${arg_SOURCES})
  if(NOT arg_OPTIMISED)
    set_target_properties(${folder}_tests PROPERTIES HEADLAB_NOT_OPTIMISED ON)
    # The linker keeps the first copy of an inline function: that of the libraries, and not the tests'.
    set(libraries)
    foreach(library headlab_commands headlab_validation headlab_engine headlab_kernels)
      if(libraries OR library IN_LIST arg_LIBRARIES)
        list(APPEND libraries $<TARGET_FILE:${library}>)
      endif()
    endforeach()
    target_link_options(${folder}_tests PRIVATE LINKER:--whole-archive ${libraries} LINKER:--no-whole-archive)
  endif()
  target_link_libraries(${folder}_tests PRIVATE ${arg_LIBRARIES} headlab_flags headlab_test_paths
                        GTest::gtest_main nlohmann_json::nlohmann_json)
  headlab_join_sources(${folder}_tests)
  headlab_precompile(${folder}_tests <Eigen/Core> <gtest/gtest.h> <nlohmann/json.hpp>)
  if(NOT HEADLAB_TEST_SHARDS)
    gtest_discover_tests(${folder}_tests DISCOVERY_MODE PRE_TEST PROPERTIES LABELS ${folder})
    return()
  endif()
  math(EXPR last "${HEADLAB_TEST_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(name ${folder}.cases_${shard}_of_${HEADLAB_TEST_SHARDS})
    add_test(NAME ${name} COMMAND ${folder}_tests --gtest_filter=-${HEADLAB_TEST_SHARDS_WITHOUT})
    set_tests_properties(${name} PROPERTIES LABELS ${folder} ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${HEADLAB_TEST_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# headlab_check_listed(kernels): no .cpp or .cu file of the folder was forgotten in its CMakeLists.txt,
# where a test that is not listed would be a test that never fails. Files of other builds than this one
# are listed in the folder's property HEADLAB_OTHER_BUILDS.
function(headlab_check_listed folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/${folder}/*.cu)
  get_directory_property(others DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} HEADLAB_OTHER_BUILDS)
  list(TRANSFORM others PREPEND ${PROJECT_SOURCE_DIR}/${folder}/)
  list(REMOVE_ITEM files ${others})
  get_directory_property(targets DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} NORMALIZE)
      list(REMOVE_ITEM files ${source})
    endforeach()
  endforeach()
  list(FILTER files EXCLUDE REGEX "/tools/(bench|cmake|example|fuzz|python)/")
  if(NOT HEADLAB_TESTS)
    list(FILTER files EXCLUDE REGEX "\\.test\\.cpp$|/testing/")
  endif()
  if(files)
    message(FATAL_ERROR "not listed in ${folder}/CMakeLists.txt: ${files}")
  endif()
endfunction()
