// SPDX-License-Identifier: Apache-2.0

/// The commit that the program was built from; null if the build was not told.
const char *ubiquity_build_commit(void);
