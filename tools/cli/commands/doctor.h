// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace headlab::tools {

/// `headlab doctor`: what this build and machine are, and a short test against closed forms.
/// Returns the exit code: 0 when every check passed, else 1.
int command_doctor();

}  // namespace headlab::tools
