// SPDX-License-Identifier: Apache-2.0
/// \file Whether memory has run out before. A stream of the standard library takes an allocation
/// that fails for the end of its text and says nothing; no file is completed behind it.
#pragma once

namespace headlab {

/// Has operator new note down from now on that it fails. For a program, not for a library.
void note_lack_of_memory();

/// Throws std::bad_alloc where that was noted.
void require_no_lack_of_memory();

/// Where all that memory lacked for has been given up.
void forget_lack_of_memory();

}  // namespace headlab
