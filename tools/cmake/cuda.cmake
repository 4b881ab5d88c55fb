# SPDX-License-Identifier: Apache-2.0
# The CUDA toolkit and the architectures to build for, included where HEADLAB_CUDA is ON. What is
# missing or cannot work stops here with one line, before CMake's own test of the compiler would stop
# with a page.
set(HEADLAB_CUDA_LEAST 80)  # cp.async and the tensor cores' TF32 begin there

find_program(HEADLAB_NVCC nvcc
  HINTS "$ENV{CUDACXX}" ENV CUDACXX PATHS ENV PATH ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda
  PATH_SUFFIXES bin)
mark_as_advanced(HEADLAB_NVCC)
if(CMAKE_CUDA_COMPILER)
  set(nvcc ${CMAKE_CUDA_COMPILER})
elseif(NOT "$ENV{CUDACXX}" STREQUAL "")
  set(nvcc $ENV{CUDACXX})
else()
  set(nvcc ${HEADLAB_NVCC})
endif()
set(cuda_advice
    "install the CUDA toolkit, 12.4 or newer, from https://developer.nvidia.com/cuda-downloads")
if(NOT nvcc)
  message(FATAL_ERROR "HEADLAB_CUDA=ON: nvcc not found: ${cuda_advice}")
endif()
execute_process(COMMAND ${nvcc} --version
  OUTPUT_VARIABLE cuda_version ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT cuda_version MATCHES "release ([0-9]+\\.[0-9]+)")
  message(FATAL_ERROR "HEADLAB_CUDA=ON: ${nvcc} --version does not work: ${cuda_advice}")
endif()
set(HEADLAB_CUDA_TOOLKIT ${CMAKE_MATCH_1})
if(HEADLAB_CUDA_TOOLKIT VERSION_LESS 12.4)
  message(FATAL_ERROR "HEADLAB_CUDA=ON: ${nvcc} is of CUDA ${HEADLAB_CUDA_TOOLKIT}: ${cuda_advice}")
endif()

# "compute_75 compute_80 ..." as a list of numbers.
execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE offered COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "compute_[0-9]+" offered "${offered}")
list(TRANSFORM offered REPLACE compute_ "")
list(SORT offered COMPARE NATURAL)
list(JOIN offered " " HEADLAB_CUDA_OFFERED)
set(possible)
foreach(number IN LISTS offered)
  if(number GREATER_EQUAL HEADLAB_CUDA_LEAST)
    string(APPEND possible " ${number}")
  endif()
endforeach()

# Machine code for what data centres have, and PTX of the newest for what comes later.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPUs to build for" FORCE)
endif()

# headlab_cuda_code(LIST OUT): "80-real;90" as "sm_80 sm_90 compute_90"; refuses what cannot be built.
function(headlab_cuda_code list out)
  set(code)
  foreach(entry IN LISTS list)
    if(NOT entry MATCHES "^([0-9]+)([af]?)(-real|-virtual)?$")
      message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES: \"${entry}\" is no architecture "
                          "(allowed: native, or numbers of${possible}, as 80-real;90)")
    endif()
    set(number ${CMAKE_MATCH_1})
    set(name ${CMAKE_MATCH_1}${CMAKE_MATCH_2})
    set(kind "${CMAKE_MATCH_3}")
    if(number LESS HEADLAB_CUDA_LEAST)
      message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES: ${entry} is too old: the kernels need "
                          "${HEADLAB_CUDA_LEAST} or newer")
    endif()
    if(NOT number IN_LIST offered)
      message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES: CUDA ${HEADLAB_CUDA_TOOLKIT} cannot compile for "
                          "${entry} (allowed:${possible})")
    endif()
    if(NOT kind STREQUAL "-virtual")
      list(APPEND code sm_${name})
    endif()
    if(NOT kind STREQUAL "-real")
      list(APPEND code compute_${name})
    endif()
  endforeach()
  list(JOIN code " " code)
  set(${out} ${code} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_CUDA_ARCHITECTURES STREQUAL "native")
  headlab_cuda_code("${CMAKE_CUDA_ARCHITECTURES}" HEADLAB_CUDA_CODE)
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "nvcc" FORCE)
endif()
if(NOT CMAKE_CUDA_HOST_COMPILER AND "$ENV{CUDAHOSTCXX}" STREQUAL "")
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "nvcc's host compiler" FORCE)
endif()
enable_language(CUDA)
if(CMAKE_CUDA_ARCHITECTURES STREQUAL "native")
  headlab_cuda_code("${CMAKE_CUDA_ARCHITECTURES_NATIVE}" HEADLAB_CUDA_CODE)
endif()
if(NOT HEADLAB_CUDA_CODE)
  message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES=native: no GPU here: give its number, as 90")
endif()
# CMake 3.25 does not know yet that nvcc 12 has C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

find_package(CUDAToolkit QUIET)
foreach(library IN ITEMS cudart_static cublas)
  if(NOT TARGET CUDA::${library})
    message(FATAL_ERROR "CUDA::${library} is not in this CUDA toolkit: ${cuda_advice}")
  endif()
endforeach()
message(STATUS "CUDA ${HEADLAB_CUDA_TOOLKIT} for ${HEADLAB_CUDA_CODE}")

# What runtime.cpp reports about this build, and where it looks for cuBLAS besides the system's folders.
get_target_property(cublas_file CUDA::cublas IMPORTED_LOCATION)
cmake_path(GET cublas_file PARENT_PATH cublas_folder)
set(HEADLAB_CUDA_FACTS
  HEADLAB_CUDA_TOOLKIT="${HEADLAB_CUDA_TOOLKIT}" HEADLAB_CUDA_CODE="${HEADLAB_CUDA_CODE}"
  HEADLAB_CUDA_OFFERED="${HEADLAB_CUDA_OFFERED}" HEADLAB_CUDA_LEAST="${HEADLAB_CUDA_LEAST}"
  HEADLAB_CUBLAS_FOLDER="${cublas_folder}")

# headlab_keep_ptxas_log(TARGET): what ptxas says of each kernel is kept next to its object file, and
# not shown with every build.
function(headlab_keep_ptxas_log target)
  set(launcher ${PROJECT_SOURCE_DIR}/tools/cmake/keep_ptxas_log ${CMAKE_CUDA_COMPILER_LAUNCHER})
  set_target_properties(${target} PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}")
endfunction()

# headlab_cuda_sources(TARGET SOURCES...): adds .cu and .cpp files, with the CUDA runtime. cuBLAS is loaded when
# heads are learned, see runtime.cpp.
function(headlab_cuda_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  target_link_libraries(${target} PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  headlab_keep_ptxas_log(${target})
endfunction()

# headlab_portable(TARGET): a program that is carried to another machine and finds the C library and
# CUDA's there, nothing else: its C++ library inside, no netCDF. A test holds it to that.
function(headlab_portable target)
  # Highway and netCDF come with libraries of ours of which such a program takes other parts.
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed)
  if(HEADLAB_TESTS)
    add_test(NAME ${target}_portable
      COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${target}>
              -P ${PROJECT_SOURCE_DIR}/tools/cmake/check_portable.cmake)
    set_tests_properties(${target}_portable PROPERTIES LABELS cuda)
  endif()
endfunction()

# headlab_cuda_tests(PROGRAM LIBRARY FILES...): a program of tests that need a GPU, each of its cases a
# CTest that shows as skipped where there is none.
function(headlab_cuda_tests program library)
  if(NOT HEADLAB_TESTS)
    return()
  endif()
  include(GoogleTest)
  add_executable(${program} ${ARGN})
  target_link_libraries(${program} PRIVATE ${library} headlab_flags GTest::gtest_main
                        nlohmann_json::nlohmann_json)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  headlab_portable(${program})
  gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS gpu)
endfunction()
