# SPDX-License-Identifier: Apache-2.0
# Fails where the PTX file has an instruction that is approximate or takes subnormal numbers for 0:
# cmake -D PTX=... -P check_exact.cmake
file(STRINGS "${PTX}" divisions REGEX "div\\.|sqrt\\.|fma\\.")
if(NOT divisions)
  message(FATAL_ERROR "${PTX}: no arithmetic there")
endif()
file(STRINGS "${PTX}" wrong REGEX "\\.(approx|ftz|full)\\.")
if(wrong)
  list(TRANSFORM wrong STRIP)
  list(GET wrong 0 first)
  string(REGEX REPLACE "[ \t].*" "" first "${first}")
  list(LENGTH wrong count)
  message(FATAL_ERROR "not exact: ${first}, the first of ${count}")
endif()
