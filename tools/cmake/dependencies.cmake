# SPDX-License-Identifier: Apache-2.0
# Finds what headlab is built on. docs/dependencies.md says why each, tools/packages.txt lists the
# Debian packages. A missing one stops with one line that names its package.

macro(headlab_find package target debian)
  if(NOT TARGET ${target})
    find_package(${package} QUIET)
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "${package} not found: apt-get install ${debian}")
  endif()
endmacro()

headlab_find(Threads Threads::Threads libc6-dev)
find_package(PkgConfig QUIET)
if(NOT PkgConfig_FOUND)
  message(FATAL_ERROR "pkg-config not found: apt-get install pkg-config")
endif()
headlab_find(Eigen3 Eigen3::Eigen libeigen3-dev)
headlab_find(hwy hwy::hwy libhwy-dev)
headlab_find(tomlplusplus tomlplusplus::tomlplusplus libtomlplusplus-dev)
headlab_find(CLI11 CLI11::CLI11 libcli11-dev)
headlab_find(Boost Boost::headers libboost-math-dev)
headlab_find(nlohmann_json nlohmann_json::nlohmann_json nlohmann-json3-dev)
headlab_find(OpenSSL OpenSSL::Crypto libssl-dev)
headlab_find(ZLIB ZLIB::ZLIB zlib1g-dev)

# Random123 is headers alone, without a CMake package.
find_path(HEADLAB_RANDOM123_DIR Random123/philox.h)
mark_as_advanced(HEADLAB_RANDOM123_DIR)
if(NOT HEADLAB_RANDOM123_DIR)
  message(FATAL_ERROR "Random123 not found: apt-get install librandom123-dev")
endif()

# netCDF through pkg-config: its CMake package would link HDF5, libcurl, libxml2 and more into the
# program, which libnetcdf alone uses.
pkg_check_modules(HEADLAB_NETCDF QUIET IMPORTED_TARGET netcdf)
if(NOT TARGET PkgConfig::HEADLAB_NETCDF)
  message(FATAL_ERROR "netCDF not found: apt-get install libnetcdf-dev")
endif()

if(HEADLAB_TESTS)
  headlab_find(GTest GTest::gtest_main libgtest-dev)
  # cuRAND's host-callable Philox is the known answer for ours where a CUDA toolkit is there.
  find_path(HEADLAB_CURAND_DIR curand_kernel.h
            HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
  mark_as_advanced(HEADLAB_CURAND_DIR)
  if(HEADLAB_EMULATED_TESTS)
    # From the CUDA toolkit where there is one.
    find_path(HEADLAB_THRUST_DIR thrust/scan.h
              HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES include/cccl include)
    mark_as_advanced(HEADLAB_THRUST_DIR)
    if(NOT HEADLAB_THRUST_DIR)
      message(FATAL_ERROR "Thrust not found: apt-get install libthrust-dev")
    endif()
  endif()
endif()
if(HEADLAB_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
  if(NOT TARGET MPI::MPI_CXX)
    message(FATAL_ERROR "MPI not found: apt-get install libopenmpi-dev openmpi-bin")
  endif()
endif()
if(HEADLAB_BENCH)
  headlab_find(benchmark benchmark::benchmark libbenchmark-dev)
endif()
