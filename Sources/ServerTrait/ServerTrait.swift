// SPDX-License-Identifier: Apache-2.0

#if !Server
#error("Build with --traits Server, as make does; the client library alone with --target Ubiquity.")
#endif
