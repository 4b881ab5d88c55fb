# SPDX-License-Identifier: Apache-2.0
# headlab_claim_scenarios(OUTPUT): a source file that holds scenarios/claims/*.toml as texts, written
# again when one of them changes.
function(headlab_claim_scenarios output)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scenarios/claims/*.toml)
  list(SORT files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(entries "")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    string(APPEND entries "      {\"${name}\", R\"scenario(${text})scenario\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/stated_claim.h"

namespace headlab {

const std::vector<ClaimScenario>& claim_scenarios() {
  static const std::vector<ClaimScenario> all = {
@entries@  };
  return all;
}

}  // namespace headlab
]])
endfunction()
