// SPDX-License-Identifier: Apache-2.0
#include "engine/files/provenance.h"

// Both are compile definitions of the build; a build by hand may go without.
#ifndef HEADLAB_VERSION
#define HEADLAB_VERSION "unknown"
#endif
#ifndef HEADLAB_GIT
#define HEADLAB_GIT "unknown"
#endif

namespace headlab {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#elif defined(__GNUC__)
  return "GCC " __VERSION__;
#else
  return "unknown";
#endif
}

}  // namespace

Provenance provenance() {
#ifdef NDEBUG
  const char* const build_type = "release";
#else
  const char* const build_type = "debug";
#endif
  return {HEADLAB_VERSION, HEADLAB_GIT, compiler(), build_type};
}

}  // namespace headlab
