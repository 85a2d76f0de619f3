// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
internal import Darwin
#else
internal import Glibc
#endif

/// The system's limit for this process's files and connections.
enum FileDescriptors {
    /// Raises the limit as far as the system permits.
    /// - Returns: The new limit.
    static func raise() -> Int {
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0 else { return 1_024 }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = min(limit.rlim_max, 1 << 20)
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// The files that the server needs besides connections: the database, its threads, the
    /// listeners.
    static let reserve = 96
}
