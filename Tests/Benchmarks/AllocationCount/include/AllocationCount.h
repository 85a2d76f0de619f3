// SPDX-License-Identifier: Apache-2.0

#pragma once

/// How often the calling thread has allocated memory. -1 where that cannot be counted: it stands in
/// the way of the C library's own functions, which only glibc allows by documented names.
long ubiquity_allocation_count(void);
