// SPDX-License-Identifier: Apache-2.0
/// \file Remembers that memory has run out. A stream of the standard library treats a failed
/// allocation as the end of its text and reports nothing, so no file is completed after one.
#pragma once

namespace headlab {

/// Makes operator new record its failures from now on. For programs, not for libraries.
void note_lack_of_memory();

/// Throws std::bad_alloc if a failure was recorded.
void require_no_lack_of_memory();

/// Forgets recorded failures, once everything that they affected has been given up.
void forget_lack_of_memory();

}  // namespace headlab
