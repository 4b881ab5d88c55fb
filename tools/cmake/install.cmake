# SPDX-License-Identifier: Apache-2.0
# cmake --install: the program, the libraries with their headers, the scenarios, and a package that
# find_package(headlab) finds.
include(CMakePackageConfigHelpers)

add_library(headlab_all INTERFACE)
add_library(headlab::headlab ALIAS headlab_all)
set_target_properties(headlab_all PROPERTIES EXPORT_NAME headlab)
target_link_libraries(headlab_all INTERFACE headlab_validation headlab_engine headlab_kernels)

install(TARGETS headlab_kernels headlab_engine headlab_validation headlab_all
  EXPORT headlabTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(HEADLAB_MPI)
  install(TARGETS headlab_mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
else()
  install(TARGETS headlab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# Completion comes from the program itself, which knows its options.
set(completions ${PROJECT_BINARY_DIR}/generated/completions)
install(CODE "
  file(MAKE_DIRECTORY \"${completions}\")
  foreach(shell bash zsh)
    execute_process(COMMAND \"$<TARGET_FILE:headlab>\" completion \${shell}
      OUTPUT_FILE \"${completions}/\${shell}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(FILES ${completions}/bash RENAME headlab
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completions}/zsh RENAME _headlab
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(DIRECTORY kernels engine validation
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headlab
  FILES_MATCHING PATTERN "*.h" PATTERN "testing" EXCLUDE PATTERN "testdata" EXCLUDE)
install(DIRECTORY scenarios/ DESTINATION ${CMAKE_INSTALL_DATADIR}/headlab/scenarios)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/headlab)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headlab)
install(EXPORT headlabTargets NAMESPACE headlab:: DESTINATION ${package_dir})
configure_package_config_file(tools/cmake/headlabConfig.cmake.in
  ${PROJECT_BINARY_DIR}/generated/headlabConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/headlabConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/headlabConfig.cmake
              ${PROJECT_BINARY_DIR}/generated/headlabConfigVersion.cmake
  DESTINATION ${package_dir})
