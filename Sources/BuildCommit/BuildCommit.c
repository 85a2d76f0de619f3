// SPDX-License-Identifier: Apache-2.0
//
// In C, because Package.swift can hand a text to no Swift source.

#include "BuildCommit.h"

#ifndef UBIQUITY_COMMIT
#define UBIQUITY_COMMIT 0
#endif

const char *ubiquity_build_commit(void) {
    return UBIQUITY_COMMIT;
}
