# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR to an empty prefix, then configures, builds and runs the example against that.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK_DIR})
function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(prefix ${WORK_DIR}/prefix)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix}
  OUTPUT_QUIET COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
step(${CMAKE_COMMAND} -S ${EXAMPLE_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
     -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_BUILD_TYPE=${CONFIG}
     -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS})
step(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
step(${WORK_DIR}/build/example ${prefix}/${DATA_DIR}/headlab/scenarios/quickstart.toml)
step(${prefix}/bin/headlab --version)
foreach(file bash-completion/completions/headlab zsh/site-functions/_headlab)
  file(SIZE ${prefix}/${DATA_DIR}/${file} bytes)  # an error where it is not there
  if(bytes EQUAL 0)
    message(FATAL_ERROR "${file} is empty")
  endif()
endforeach()
