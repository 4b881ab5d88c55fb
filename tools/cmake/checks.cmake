# SPDX-License-Identifier: Apache-2.0
# Checks of the tree as a whole; included by tools/CMakeLists.txt.
set_property(DIRECTORY APPEND PROPERTY HEADLAB_OTHER_BUILDS  # tests with CUDA
  cmake/approximate.cu cmake/dividing.cu cmake/spilling.cu)
if(NOT HEADLAB_TESTS)
  return()
endif()
set(check_dir ${PROJECT_BINARY_DIR}/checks)

# headlab_check(NAME LABEL [FINDS REGEX] COMMAND ...): a test of that label. With FINDS it is the control of a check:
# it passes where the output has the regular expression.
function(headlab_check name label)
  cmake_parse_arguments(PARSE_ARGV 2 of "" FINDS COMMAND)
  add_test(NAME ${name} COMMAND ${of_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS ${label})
  if(DEFINED of_FINDS)
    set_tests_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "${of_FINDS}")
  endif()
endfunction()

set(HEADLAB_TESTED_PAGES  # of docs/: all of their commands
  real-heads.md hdi.md heads-on-text.md allocation.md claims.md weights-alone.md table-to-verdict.md tables.md measures.md
  precision.md)

# Each header compiles alone: for each there is a file that includes it twice and nothing else. No other
# file shows that, because files of a folder are compiled as one. A *-inl.h file is included once per
# SIMD target, or once per number type, and is no header in this sense. The standard library and Eigen are
# precompiled, which hides where a header forgets one of theirs; tools/check/headers compiles all of it
# again for each header.
if(HEADLAB_HEADER_CHECKS)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/kernels/*.h ${PROJECT_SOURCE_DIR}/engine/*.h
       ${PROJECT_SOURCE_DIR}/validation/*.h ${PROJECT_SOURCE_DIR}/tools/*.h)
  list(FILTER headers EXCLUDE REGEX "-inl\\.h$|^tools/python/")
  set(header_sources)
  foreach(header IN LISTS headers)
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} once REGEX "^#pragma once$")
    if(NOT once)
      message(FATAL_ERROR "${header}: no #pragma once")
    endif()
    set(source ${check_dir}/headers/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@header@\"\n#include \"@header@\"\n" @ONLY)
    list(APPEND header_sources ${source})
  endforeach()
  add_library(header_checks OBJECT ${header_sources})
  # A compiler cache reads each file twice, which is most of the work here.
  set_target_properties(header_checks PROPERTIES UNITY_BUILD OFF CXX_COMPILER_LAUNCHER "")
  target_link_libraries(header_checks PRIVATE
    headlab_validation headlab_flags hwy::hwy tomlplusplus::tomlplusplus PkgConfig::HEADLAB_NETCDF
    nlohmann_json::nlohmann_json CLI11::CLI11)
  headlab_precompile(header_checks <Eigen/Core>)
endif()

# The same compiler command on a header that forgets its includes has to fail.
file(CONFIGURE OUTPUT ${check_dir}/forgetful.h @ONLY
     CONTENT "#pragma once\ninline std::string forgetful() { return {}; }\n")
headlab_check(header_checks_negative_control tree FINDS "not name a type|not a member|has not been declared"
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -include ${check_dir}/forgetful.h
          -x c++ /dev/null)

# Debian's Python is the one that has Debian's xarray.
find_program(HEADLAB_PYTHON3 python3 HINTS /usr/bin)
mark_as_advanced(HEADLAB_PYTHON3)
if(NOT HEADLAB_PYTHON3)
  message(FATAL_ERROR "python3 not found: apt-get install python3-xarray python3-netcdf4")
endif()

# The rooms have an order and modules no circle. Each kind of fault is planted in a tree of its own, and
# has to be found.
set(layers_script ${CMAKE_CURRENT_SOURCE_DIR}/check/layers.py)
headlab_check(layers tree COMMAND ${HEADLAB_PYTHON3} ${layers_script} ${PROJECT_SOURCE_DIR})
# headlab_planted_fault(NAME FOUND FILE TEXT [FILE TEXT...]): the check finds FOUND in a tree of the files.
function(headlab_planted_fault name found)
  set(tree ${check_dir}/layers_${name})
  while(ARGN)
    list(POP_FRONT ARGN file text)
    file(CONFIGURE OUTPUT ${tree}/${file} CONTENT "${text}\n" @ONLY)
  endwhile()
  headlab_check(layers_finds_${name} tree FINDS "${found}" COMMAND ${HEADLAB_PYTHON3} ${layers_script} ${tree})
endfunction()
headlab_planted_fault(floor "kernels/wrong.h: includes engine/run/run.h, of a floor above"
  kernels/wrong.h "#include \"engine/run/run.h\"")
headlab_planted_fault(room "engine/moments/wrong.h: includes engine/run/run.h, but engine/moments comes"
  engine/moments/wrong.h "#include \"engine/run/run.h\"" engine/run/run.h "#pragma once")
headlab_planted_fault(machine "kernels/wrong.cpp:1: asks the machine .getenv., which kernels/host.cpp alone does"
  kernels/wrong.cpp "const char* const home = std::getenv(\"HOME\")\\;")
headlab_planted_fault(folder "engine/wrong.cpp:1: goes through a folder .remove_all., which engine/files/folder.cpp alone"
  engine/wrong.cpp "std::filesystem::remove_all(path)\\;")
headlab_planted_fault(circle "in a circle: engine/run/a, engine/run/b"
  engine/run/a.h "#include \"engine/run/b.h\"" engine/run/b.h "#pragma once"
  engine/run/b.cpp "#include \"engine/run/a.h\"")
headlab_planted_fault(import_circle "in a circle: tools/python/headlab/_a, tools/python/headlab/_b"
  kernels/a.h "#pragma once" tools/python/headlab/_a.py "def f():\n    from ._b import g"
  tools/python/headlab/_b.py "from . import _a as a")
headlab_planted_fault(helper "engine/run/a.h: includes engine/testing/b.h, a helper of tests"
  engine/run/a.h "#include \"engine/testing/b.h\"" engine/testing/b.h "#pragma once")

# The tree has the sizes in budget.toml. The planted tree has a fault of each kind.
set(budget_script ${CMAKE_CURRENT_SOURCE_DIR}/check/budget.py)
headlab_check(budget tree COMMAND ${HEADLAB_PYTHON3} ${budget_script} ${PROJECT_SOURCE_DIR})
set(planted_tree ${check_dir}/budget)
foreach(file IN ITEMS
    "kernels/laws.h|#pragma once" "kernels/a.cpp|#include \"kernels/laws.h\"\n#include <Eigen/SVD>"
    "kernels/b.cpp|#include \"kernels/laws.h\"" "kernels/c.test.cpp|TEST(A, Same) {}\nTEST(B, Same) {}"
    "kernels/oracle.h|#pragma once" "kernels/d.test.cpp|#include \"kernels/oracle.h\"" "engine/run/run.h|#pragma once"
    "docs/README.md|three words here" "tools/check/budget.toml|largest_folder = 5\ntests_of_one_name = 0\nsecond_copies = 1\n[docs]\npages = 1\nwords = 2\n[rooms]\n\
kernels = {lines = 4, files = 9}\n\"tests of kernels\" = {lines = 3, files = 2}\n\"engine/gone\" = {lines = 1, files = 1}\n\
[reach]\n\"kernels/laws.h\" = 1\n[sources]\n\"Eigen/SVD\" = []")
  string(REGEX MATCH "^([^|]+)\\|(.*)$" parts "${file}")
  file(CONFIGURE OUTPUT ${planted_tree}/${CMAKE_MATCH_1} CONTENT "${CMAKE_MATCH_2}\n" @ONLY)
endforeach()
foreach(fault IN ITEMS "lines|kernels, lines: 5, and" "files|kernels, files: 4, and .* enter what is left" "room|engine/run: 1 lines, and"
    "gone|engine/gone: not in the tree" "reach|sources that reach kernels/laws.h: 2" "sources|kernels/a.cpp: includes Eigen/SVD, which no source"
    "tests_alone|kernels/oracle.h: tests alone include it" "one_name|tests of one name: 1" "folder|largest folder: 6, and"
    "words|words of docs/: 3, and")
  string(REGEX MATCH "^([^|]+)\\|(.*)$" parts "${fault}")
  headlab_check(budget_finds_${CMAKE_MATCH_1} tree FINDS "${CMAKE_MATCH_2}"
    COMMAND ${HEADLAB_PYTHON3} ${budget_script} ${planted_tree})
endforeach()
# Another compiler makes others, and so does the CUDA backend.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\." AND CMAKE_UNITY_BUILD
   AND CMAKE_BUILD_TYPE STREQUAL Release AND NOT CMAKE_CXX_FLAGS AND NOT HEADLAB_CUDA)
  set(archives $<TARGET_FILE:headlab_kernels> $<TARGET_FILE:headlab_engine> $<TARGET_FILE:headlab_validation>
    $<TARGET_FILE:headlab_commands>)
  headlab_check(second_copies tools
    COMMAND ${HEADLAB_PYTHON3} ${budget_script} ${PROJECT_SOURCE_DIR} --archives ${archives})
  headlab_check(second_copies_negative_control tools FINDS "bytes of second copies: [0-9]+, and"
    COMMAND ${HEADLAB_PYTHON3} ${budget_script} ${planted_tree} --archives ${archives})
endif()

# Names that were replaced do not come back.
set(names_script ${CMAKE_CURRENT_SOURCE_DIR}/check/retired_names.py ${CMAKE_CURRENT_SOURCE_DIR}/check/retired_names.txt)
headlab_check(retired_names tree COMMAND ${HEADLAB_PYTHON3} ${names_script} ${PROJECT_SOURCE_DIR})
file(CONFIGURE OUTPUT ${check_dir}/retired_names/engine/old.h CONTENT "struct Study;  // \"Study\"\n" @ONLY)
headlab_check(retired_names_negative_control tree FINDS "old.h:1: Study is Scenario now"
  COMMAND ${HEADLAB_PYTHON3} ${names_script} ${check_dir}/retired_names)

# Links of pages lead to pages and sections that are there, sources name pages that are there, and records commits.
set(links_script ${CMAKE_CURRENT_SOURCE_DIR}/check/links.py)
headlab_check(links tree COMMAND ${HEADLAB_PYTHON3} ${links_script} ${PROJECT_SOURCE_DIR})
set(gone gone)
file(REMOVE_RECURSE ${check_dir}/links)
file(CONFIGURE OUTPUT ${check_dir}/links/pages/page.md CONTENT
     "# A page\n[right](page.md#a-page) [page](gone.md) [section](page.md#no-section) `[code](gone.md)`\n" @ONLY)
file(CONFIGURE OUTPUT ${check_dir}/links/kernels/a.h CONTENT "// docs/@gone@.md\n" @ONLY)
set(finds 3)
find_program(HEADLAB_GIT git)
if(HEADLAB_GIT)
  # One commit, whose hash is known as its times are.
  execute_process(COMMAND git init -q WORKING_DIRECTORY ${check_dir}/links)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_AUTHOR_DATE=2026-01-01T00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00Z
    git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -q --allow-empty -m a
    WORKING_DIRECTORY ${check_dir}/links)
  file(CONFIGURE OUTPUT ${check_dir}/links/docs/measured/${gone}.md CONTENT "0a19443c, 1234abcd\n" @ONLY)
  set(finds 4)
endif()
foreach(fault IN ITEMS "page|pages/page.md:2: gone.md: is not there" "section|page.md#no-section: has no such section"
    "source|kernels/a.h:1: docs/@gone@.md: is not there" "commit|gone.md:1: 1234abcd: is no commit that led here"
    "no_more|pages, @finds@ finds")
  if(fault MATCHES "^commit" AND NOT HEADLAB_GIT)
    continue()
  endif()
  string(REGEX MATCH "^([^|]+)\\|(.*)$" parts "${fault}")
  string(CONFIGURE "${CMAKE_MATCH_2}" wanted @ONLY)
  headlab_check(links_finds_${CMAKE_MATCH_1} tree FINDS "${wanted}"
    COMMAND ${HEADLAB_PYTHON3} ${links_script} ${check_dir}/links)
endforeach()

# Braces that GCC 12 destroys twice: tools/test has braces.py read the product. Here its control, of which
# what it leaves has to be right by this compiler.
add_executable(braces_control check/braces_control.cpp)
target_link_libraries(braces_control PRIVATE headlab_flags)
add_dependencies(tools_tests braces_control)
headlab_check(braces_control tools COMMAND braces_control)
headlab_check(braces_negative_control tools COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/braces.py
              --control ${CMAKE_CURRENT_SOURCE_DIR}/check/braces_control.cpp)

# Absolute paths are definitions of the files that use them alone, for the sake of compiler caches.
set(paths_script ${CMAKE_CURRENT_SOURCE_DIR}/check/path_definitions.py)
headlab_check(path_definitions tree
  COMMAND ${HEADLAB_PYTHON3} ${paths_script} ${PROJECT_BINARY_DIR}/compile_commands.json ${PROJECT_SOURCE_DIR})
file(CONFIGURE OUTPUT ${check_dir}/path_definitions.json @ONLY CONTENT
  "[{\"directory\": \"@check_dir@\", \"file\": \"forgetful.h\", \"command\": \"c++ -DFOLDER=\\\"@PROJECT_SOURCE_DIR@/x\\\"\"}]\n")
headlab_check(path_definitions_negative_control tree FINDS "forgetful.h: does not use FOLDER, a path"
  COMMAND ${HEADLAB_PYTHON3} ${paths_script} ${check_dir}/path_definitions.json ${PROJECT_SOURCE_DIR})

# What `cmake --install` leaves is enough to build and run a program against.
headlab_check(install_example tools
  COMMAND ${CMAKE_COMMAND}
    -D BUILD_DIR=${PROJECT_BINARY_DIR} -D EXAMPLE_DIR=${CMAKE_CURRENT_SOURCE_DIR}/example
    -D WORK_DIR=${check_dir}/install_example -D DATA_DIR=${CMAKE_INSTALL_DATADIR}
    -D GENERATOR=${CMAKE_GENERATOR} -D COMPILER=${CMAKE_CXX_COMPILER}
    -D CONFIG=${CMAKE_BUILD_TYPE} -D FLAGS=${CMAKE_CXX_FLAGS}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/check_install.cmake)

# Result files open in what users read them with.
headlab_check(xarray tools
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/xarray_check.py $<TARGET_FILE:headlab>)
add_test(NAME tables
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/table_check.py $<TARGET_FILE:headlab>
          ${PROJECT_SOURCE_DIR})
headlab_check(datasets tools
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/dataset_check.py $<TARGET_FILE:headlab>)
headlab_check(bench_programs tools
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/bench/bench_check.py $<TARGET_FILE:headlab>)
headlab_check(heads_of_checkpoints tools
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/heads_check.py $<TARGET_FILE:headlab>)
headlab_check(heads_of_models tools
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/models_check.py $<TARGET_FILE:headlab>)
# Reports are well-formed, and a browser shows all of their figures without asking for anything. Tests labelled
# services, a part of tools/test, start services or take long.
headlab_check(reports tools
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/report_check.py $<TARGET_FILE:headlab>)
headlab_check(reports_in_browser services
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/report_check.py $<TARGET_FILE:headlab> --browser)
# Scripts of docs/clusters.md under a Slurm of the test's own.
headlab_check(slurm services
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/slurm_check.py $<TARGET_FILE:headlab>
          ${PROJECT_SOURCE_DIR}/docs/clusters.md)
# Formulas for large clusters agree with a simulation, and with wrong constants they do not.
headlab_check(cluster_model tree
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/cluster_model.py)
headlab_check(cluster_model_negative_control tree
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/cluster_model.py --wrong)
set_tests_properties(cluster_model_negative_control PROPERTIES WILL_FAIL ON)
# Those for mpirun, GNU parallel, Dask and Snakemake; tools/test installs the last two.
headlab_check(recipes services
  COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/recipes_check.py $<TARGET_FILE:headlab>
          ${PROJECT_SOURCE_DIR}/docs/clusters.md ${PROJECT_SOURCE_DIR}/build/drivers)
set_tests_properties(
  xarray datasets bench_programs heads_of_checkpoints heads_of_models reports_in_browser slurm recipes
  PROPERTIES SKIP_RETURN_CODE 77)
# Runs shared by the ranks of mpirun.
if(HEADLAB_MPI)
  add_test(NAME mpi
    COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/mpi_check.py $<TARGET_FILE:headlab_mpi>
            ${PROJECT_SOURCE_DIR}/docs/clusters.md)
  add_test(NAME mpi_slurm
    COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/slurm_check.py $<TARGET_FILE:headlab_mpi>
            ${PROJECT_SOURCE_DIR}/docs/clusters.md --mpi)
  set_tests_properties(mpi mpi_slurm PROPERTIES SKIP_RETURN_CODE 77 LABELS mpi)
endif()

# The commands of README.md, and of pages that are read with a terminal beside them, do what these say; pages are a part
# of tools/test --nightly.
set(pages_script ${CMAKE_CURRENT_SOURCE_DIR}/check/doc_commands.py)
list(TRANSFORM HEADLAB_TESTED_PAGES PREPEND ${PROJECT_SOURCE_DIR}/docs/ OUTPUT_VARIABLE pages)
headlab_check(doc_commands tools
  COMMAND ${HEADLAB_PYTHON3} ${pages_script} $<TARGET_FILE:headlab> ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/README.md)
headlab_check(doc_commands_of_pages services
  COMMAND ${HEADLAB_PYTHON3} ${pages_script} $<TARGET_FILE:headlab> ${PROJECT_SOURCE_DIR} ${pages})
# headlab_faulty_page(NAME FOUND TEXT): the check finds FOUND in a page of the text.
function(headlab_faulty_page name found text)
  file(CONFIGURE OUTPUT ${check_dir}/pages/${name}.md CONTENT "${text}\n" @ONLY)
  add_test(NAME doc_commands_finds_${name} COMMAND ${HEADLAB_PYTHON3} ${pages_script} $<TARGET_FILE:headlab>
           ${PROJECT_SOURCE_DIR} ${check_dir}/pages/${name}.md)
  set_tests_properties(doc_commands_finds_${name} PROPERTIES PASS_REGULAR_EXPRESSION "${found}")
endfunction()
headlab_faulty_page(error "exit code 2 for 0" "    headlab run there_is_none.toml")
headlab_faulty_page(number "the output lacks: Rounds 3" "    $ headlab --version\n    Rounds 3")
headlab_faulty_page(estimate "the output lacks: 0.0083"
  "    $ headlab run scenarios/quickstart.toml --replicates 64\n    ...\n    0.0083 ± 0.0000064")
headlab_faulty_page(nothing "nothing.md: no command" "Prose.")
headlab_faulty_page(python "python a.py: exit code 3 for 0" "```python\n# a.py\nraise SystemExit(3)\n```\n\n    python a.py")

# Commands that are killed or stopped, or whose calls of the system fail, lose nothing: two calls of each command and kind,
# a minute of them. All are a part of tools/test --nightly. A sanitizer would have to be loaded first.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_library(headlab_fault_injector MODULE check/faults/injector.cpp)
  target_link_libraries(headlab_fault_injector PRIVATE ${CMAKE_DL_LIBS})
  set(faults ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/faults)
  foreach(part RANGE 1 4)
    headlab_check(faults.${part} tools COMMAND ${faults} $<TARGET_FILE:headlab> $<TARGET_FILE:headlab_fault_injector>
                  --kinds kill,28,read-5,INT,read-TERM --most 2 --part ${part}/4)
  endforeach()
  # Of commands that do not meet libhdf5, which does not survive every allocation that fails inside of it.
  headlab_check(faults.memory tools COMMAND ${faults} $<TARGET_FILE:headlab> $<TARGET_FILE:headlab_fault_injector>
                --kinds memory --most-memory 12 --only theory --only "dataset npy")
  # A program that removes a file of the user.
  file(WRITE ${check_dir}/careless "#!/bin/sh\nrm -f precious.txt\nexec '${PROJECT_BINARY_DIR}/headlab' \"$@\"\n")
  file(CHMOD ${check_dir}/careless PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  headlab_check(faults_find_a_lost_file tools FINDS "precious.txt is lost" COMMAND ${faults} ${check_dir}/careless
                $<TARGET_FILE:headlab_fault_injector> --kinds 28 --most 2 --only theory)
  # A program that keeps to itself what the system said.
  file(WRITE ${check_dir}/curt "#!/bin/sh\nsaid=$('${PROJECT_BINARY_DIR}/headlab' \"$@\" 2>&1 >/dev/null)\ncode=$?\n"
       "[ -z \"$said\" ] || echo \"\${said%% (*}\" >&2\nexit $code\n")
  file(CHMOD ${check_dir}/curt PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  headlab_check(faults_find_a_line_without_its_cause tools FINDS "theory, 28 at call" COMMAND ${faults} ${check_dir}/curt
                $<TARGET_FILE:headlab_fault_injector> --kinds 28 --most 2 --only theory)
  # One that hangs where a file was left half written.
  file(WRITE ${check_dir}/stuck "#!/bin/sh\n[ -z \"$(find . -name '*.tmp-*')\" ] || exec sleep 60\n\
exec '${PROJECT_BINARY_DIR}/headlab' \"$@\"\n")
  file(CHMOD ${check_dir}/stuck PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  headlab_check(faults_find_a_command_that_hangs tools FINDS "does not end.*1 broken promises" COMMAND ${faults}
                ${check_dir}/stuck $<TARGET_FILE:headlab_fault_injector> --kinds kill --most 2 --only theory --hangs 10)
  headlab_check(faults_find_a_new_command tools FINDS "rewind: has no row in COMMANDS"
                COMMAND ${faults} ${check_dir}/newer $<TARGET_FILE:headlab_fault_injector>)
  # Files that are damaged are refused, or nothing that is shown changes. A reader that checks nothing is found.
  add_library(headlab_forks MODULE check/damage/forks.cpp)
  target_link_libraries(headlab_forks PRIVATE ${CMAKE_DL_LIBS})
  set(damage ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/damage)
  headlab_check(damage tools COMMAND ${damage} $<TARGET_FILE:headlab> $<TARGET_FILE:headlab_forks> --flips 12)
  file(WRITE ${check_dir}/credulous "#!/bin/sh\nexec cksum \"$2\"\n")
  file(CHMOD ${check_dir}/credulous PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  headlab_check(damage_finds_a_credulous_reader tools FINDS "shows another thing" COMMAND ${damage}
                ${check_dir}/credulous $<TARGET_FILE:headlab_forks> --maker $<TARGET_FILE:headlab> --only results.nc --flips 4)
  set_tests_properties(damage PROPERTIES COST 60)
endif()

# Every command stops where it is told to, at a moment. Three of each are a part of tools/test --nightly,
# docs/measured/limits.md has thirty.
set(signals ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/signals_check.py)
headlab_check(signals tools COMMAND ${signals} $<TARGET_FILE:headlab> --moments 1)
# A program that does not hear signals.
file(WRITE ${check_dir}/deaf "#!/bin/sh\ntrap '' INT TERM HUP\nexec '${PROJECT_BINARY_DIR}/headlab' \"$@\"\n")
file(CHMOD ${check_dir}/deaf PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
headlab_check(signals_find_a_deaf_program tools FINDS "no line within 2 s"
              COMMAND ${signals} ${check_dir}/deaf --moments 1 --hangs 2 --only "theory, standard input")
# A command that help lists and no table of these checks has.
file(WRITE ${check_dir}/newer "#!/bin/sh\n'${PROJECT_BINARY_DIR}/headlab' \"$@\" | sed 's/^  run  .*/&\\n  rewind  Rewind/'\n")
file(CHMOD ${check_dir}/newer PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
headlab_check(signals_find_a_new_command tools FINDS "rewind: has no row in COMMANDS" COMMAND ${signals} ${check_dir}/newer)

# The program does what the tests of its behaviour say, which are text.
set(behaviour_script ${CMAKE_CURRENT_SOURCE_DIR}/check/behaviour.py)
file(GLOB behaviours CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cli/behaviour/*.txt)
foreach(behaviour IN LISTS behaviours)
  cmake_path(GET behaviour STEM subject)
  headlab_check(behaviour.${subject} tools
    COMMAND ${HEADLAB_PYTHON3} ${behaviour_script} $<TARGET_FILE:headlab> ${behaviour})
endforeach()
# headlab_faulty_behaviour(NAME FOUND LINES...): the runner finds FOUND in a test of the lines.
function(headlab_faulty_behaviour name found)
  list(JOIN ARGN "\n" lines)
  file(CONFIGURE OUTPUT ${check_dir}/behaviour/${name}.txt CONTENT "== it fails\n${lines}\n" @ONLY)
  headlab_check(behaviour_finds_${name} tools FINDS "${found}" COMMAND ${HEADLAB_PYTHON3} ${behaviour_script}
                $<TARGET_FILE:headlab> ${check_dir}/behaviour/${name}.txt)
endfunction()
headlab_faulty_behaviour(code "exit code 2 for 0\n$"
  "$ headlab rewind" "! ...")
headlab_faulty_behaviour(stdout "stdout is another:\n[^\n]*\n    -run\n    .ran\n$"
  "$ echo ran" "| run")
headlab_faulty_behaviour(stderr "stderr is another:\n[^\n]*\n    -run\n    .ran\n$"
  "$ echo ran >&2" "! run")
headlab_faulty_behaviour(missing_line "stdout is another:\n[^\n]*\n     one\n    -two\n$"
  "$ echo one" "| one" "| two")
headlab_faulty_behaviour(further_line "stdout is another:\n[^\n]*\n     1\n    .2\n$"
  "$ seq 1 2" "| 1")
headlab_faulty_behaviour(number "stdout is another:\n[^\n]*\n    -<n> s\n    .nan s\n$"
  "$ echo nan s" "| <n> s")
headlab_faulty_behaviour(order "stdout is another:"
  "$ seq 3" "| ..." "| 2" "| ..." "| 1" "| ...")
headlab_faulty_behaviour(new_file "rejected, and yet there appeared, changed or went: new\n$"
  "$ headlab rewind $(touch new)" "! ..." "[2]")
headlab_faulty_behaviour(changed_file "rejected, and yet there appeared, changed or went: old\n$"
  "--- old" "text" "---" "$ headlab rewind $(echo more >> old)" "! ..." "[2]")
headlab_faulty_behaviour(unknown_line "unknown_line.txt:3: not a line of a test: expected"
  "$ echo" "expected")
headlab_faulty_behaviour(nothing "nothing.txt: no command"
  "# prose")
# With --write the runner mends what it finds, and keeps lines with marks and steps that are right.
file(CONFIGURE OUTPUT ${check_dir}/behaviour/to_write.txt @ONLY CONTENT
     "== it is mended\n$ seq 2; seq 5; echo a >&2; exit 3\n| <n>\n| 3\n# kept\n! b\n[2]\n\n$ seq 9\n| 1\n| ...\n| 9\n\n$ echo b; echo a >&2\n! a\n# kept\n| b\n")
file(CONFIGURE OUTPUT ${check_dir}/behaviour/written.txt @ONLY CONTENT
     "== it is mended\n# kept\n$ seq 2; seq 5; echo a >&2; exit 3\n| <n>\n| 2\n| 1\n| 2\n| 3\n| 4\n| 5\n! a\n[3]\n\n$ seq 9\n| 1\n| ...\n| 9\n\n$ echo b; echo a >&2\n! a\n# kept\n| b\n")
add_test(NAME behaviour_write WORKING_DIRECTORY ${check_dir}/behaviour COMMAND sh -c
  "cp to_write.txt scratch.txt && \"$1\" \"$2\" \"$3\" scratch.txt --write && cmp scratch.txt written.txt" sh
  ${HEADLAB_PYTHON3} ${behaviour_script} $<TARGET_FILE:headlab>)
set_tests_properties(behaviour_write PROPERTIES LABELS tools)

# The page of laws has those of the program; a row that it lacks is found, and written.
set(laws_script ${CMAKE_CURRENT_SOURCE_DIR}/check/laws_page.py)
headlab_check(laws_page tools
  COMMAND ${HEADLAB_PYTHON3} ${laws_script} $<TARGET_FILE:headlab> ${PROJECT_SOURCE_DIR}/docs/laws.md)
headlab_check(laws_page_write tools FINDS "\\+\\| \\| `triangular`[^\n]*\n[^\n]*--write enters this\nwritten" COMMAND sh -c
  "cd \"$4\" && grep -v '`triangular`' \"$3\" > laws.md; \"$1\" \"$0\" \"$2\" laws.md || \"$1\" \"$0\" \"$2\" laws.md --write && cmp laws.md \"$3\" && echo written"
  ${laws_script} ${HEADLAB_PYTHON3} $<TARGET_FILE:headlab> ${PROJECT_SOURCE_DIR}/docs/laws.md ${check_dir})

# The inner loops of the GPU run from registers; a kernel that does not is found.
if(HEADLAB_CUDA)
  add_library(spilling OBJECT cmake/spilling.cu)
  target_link_libraries(spilling PRIVATE headlab_flags)
  headlab_keep_ptxas_log(spilling)
  function(headlab_add_spill_test name target)
    set(objects $<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,\\.cu\\.o$>)
    headlab_check(${name} cuda
      COMMAND ${CMAKE_COMMAND} -D "OBJECTS=$<JOIN:${objects},|>" -D SCRATCH=${check_dir}/${name}.txt
              -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/check_spills.cmake)
  endfunction()
  headlab_add_spill_test(cuda_spills headlab_kernels)
  headlab_add_spill_test(cuda_spills_negative_control spilling)
  set_tests_properties(cuda_spills_negative_control PROPERTIES
    PASS_REGULAR_EXPRESSION "kernels with local memory:.*spilling_sums_kernel")

  # The draws have the bits of the CPU's: no approximate instruction, and subnormal numbers stay.
  function(headlab_add_exact_test name source)
    add_library(${name} OBJECT ${source})
    target_link_libraries(${name} PRIVATE headlab_kernels headlab_flags)
    set_target_properties(${name} PROPERTIES
      CUDA_PTX_COMPILATION ON CUDA_ARCHITECTURES 90-virtual CUDA_COMPILER_LAUNCHER "")
    headlab_check(${name} cuda COMMAND ${CMAKE_COMMAND} -D PTX=$<TARGET_OBJECTS:${name}>
                  -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/check_exact.cmake)
  endfunction()
  headlab_add_exact_test(cuda_draws_are_exact ${PROJECT_SOURCE_DIR}/kernels/cuda/draws.cu)
  headlab_add_exact_test(cuda_draws_are_exact_negative_control cmake/approximate.cu)
  set_tests_properties(cuda_draws_are_exact_negative_control PROPERTIES
    PASS_REGULAR_EXPRESSION "not exact: div.approx.f32")
endif()

# What is carried to a machine with a GPU needs the C library alone (headlab_portable); headlab needs more, which is
# found.
if(HEADLAB_CUDA)
  headlab_check(portable_negative_control cuda
    FINDS "cannot be carried to another machine, needs[\n ]+libhwy[^\n]*libnetcdf"
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:headlab>
            -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/check_portable.cmake)
endif()

# The check of a machine with a GPU ends as it says: with stand-ins for the driver and the programs.
headlab_check(gpu_check services
  COMMAND ${HEADLAB_PYTHON3} -B ${CMAKE_CURRENT_SOURCE_DIR}/check/gpu_check_test.py ${CMAKE_CXX_COMPILER})
# They begin before others, so that at the end no processor waits for one of them.
set_tests_properties(doc_commands signals PROPERTIES COST 60)

# docs/dependencies.md says where Thrust is called and how often.
headlab_check(thrust_calls tools COMMAND ${CMAKE_COMMAND} -D PAGE=${PROJECT_SOURCE_DIR}/docs/dependencies.md
  -D KERNELS=${PROJECT_SOURCE_DIR}/kernels -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/check_thrust.cmake)
file(COPY ${PROJECT_SOURCE_DIR}/kernels/cuda/rows.cu DESTINATION ${check_dir}/thrust/cuda)
file(CONFIGURE OUTPUT ${check_dir}/thrust/cuda/other.cu CONTENT "auto n = thrust::reduce(a, b);\n" @ONLY)
headlab_check(thrust_calls_negative_control tools FINDS "other.cu: calls Thrust" COMMAND ${CMAKE_COMMAND} -D PAGE=${PROJECT_SOURCE_DIR}/docs/dependencies.md
  -D KERNELS=${check_dir}/thrust -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/check_thrust.cmake)

# Machine code is counted where there is a disassembler: no kernel is more expensive than its row of the
# table, and one that divides in its tile loop is found; none orders its loads with
# writes, except Thrust's, in rows.cu.
set(slots_script ${CMAKE_CURRENT_SOURCE_DIR}/check/slots.py)
set(slots_table ${CMAKE_CURRENT_SOURCE_DIR}/check/slots.toml)
headlab_check(slots_unit tree COMMAND ${HEADLAB_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/check/slots_test.py)
headlab_check(slots_page tree COMMAND ${HEADLAB_PYTHON3} ${slots_script} ${slots_table}
         --page ${PROJECT_SOURCE_DIR}/docs/measured/slots.md)
if(HEADLAB_CUDA)
  add_library(dividing OBJECT cmake/dividing.cu)
  target_link_libraries(dividing PRIVATE headlab_flags)
  headlab_keep_ptxas_log(dividing)
  set(slots_options --toolkit ${HEADLAB_CUDA_TOOLKIT} --tools ${PROJECT_SOURCE_DIR}/build/disassembler)
  add_test(NAME cuda_slots COMMAND_EXPAND_LISTS
    COMMAND ${HEADLAB_PYTHON3} ${slots_script} ${slots_options} ${slots_table}
            $<FILTER:$<FILTER:$<TARGET_OBJECTS:headlab_kernels>,INCLUDE,\.cu\.o$>,EXCLUDE,/rows\.cu\.o$>)
  add_test(NAME cuda_slots_negative_control
    COMMAND ${HEADLAB_PYTHON3} ${slots_script} ${slots_options} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/dividing.toml
            $<TARGET_OBJECTS:dividing>)
  set_tests_properties(cuda_slots cuda_slots_negative_control PROPERTIES LABELS cuda SKIP_RETURN_CODE 77)
  set_tests_properties(cuda_slots_negative_control PROPERTIES PASS_REGULAR_EXPRESSION
    "not as it says:\n[^\n]*ordered_kernel[^\n]*: 1 loads of global memory[^\n]*\ncontrol, dividing: [0-9.]+ slots a weight, 3.6 in its row")
endif()
