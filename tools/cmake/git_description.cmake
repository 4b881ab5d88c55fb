# SPDX-License-Identifier: Apache-2.0
# Writes HEADER with HEADLAB_GIT, the commit that SOURCE_DIR is at; "unknown" outside a git checkout.
# The file is written only when it changes, so that an unchanged commit rebuilds nothing.
cmake_minimum_required(VERSION 3.25)
find_program(GIT git)
set(description unknown)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} describe --always --dirty
    WORKING_DIRECTORY ${SOURCE_DIR} RESULT_VARIABLE failed OUTPUT_VARIABLE described
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed EQUAL 0 AND described)
    set(description ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define HEADLAB_GIT \"@description@\"\n" @ONLY)
