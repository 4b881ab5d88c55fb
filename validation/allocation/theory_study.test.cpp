// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/theory_study.h"
