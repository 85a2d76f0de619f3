// SPDX-License-Identifier: Apache-2.0

/// The limits that are the same for every server, because no operator has a reason to choose others.
/// Tests set smaller values for some, which are variables.
package struct ServerConstants: Hashable, Sendable {
    // MARK: - Connections

    /// The size of a request's address and headers: as in Node.js. Clients send less than a kilobyte,
    /// proxies add cookies.
    static let headerBytesMax = 16_384
    /// A browser behind two proxies sends less than half as many headers.
    static let headerFieldsMax = 64
    /// The requests of a connection that may wait for their answers. Clients send one at a time.
    static let pipelinedRequestsMax = 16
    /// From the opening of a connection, or the first byte of a request, to the end of the headers:
    /// a TLS handshake over the worst mobile network, with one packet lost.
    package var headSeconds: Int64 = 20
    /// From the end of the headers to the end of the body: the largest push of the default limits at
    /// 0.6 megabits a second.
    package var bodySeconds: Int64 = 120
    /// The time over which the two rates below are measured: longer than a train's tunnel.
    package var slowSeconds: Int64 = 20
    /// The minimum rate of a body, in bytes a second. The slowest networks in use (EDGE) have ten
    /// times that.
    static let bodyBytesPerSecondMin = 1_024
    /// The minimum rate at which an answer is read, in bytes a second.
    package var answerBytesPerSecondMin = 1_024
    /// A connection without requests is closed after this time. A proxy must be the first to close;
    /// nginx does after 60 seconds.
    package var idleConnectionSeconds: Int64 = 120
    /// The time for which a shutdown waits for requests under way: container runtimes wait as long
    /// before they kill.
    static let shutdownSeconds: Int64 = 10

    // MARK: - Work

    /// The pushes that wait for the disk: some seconds of work for a slow one. Devices of more would
    /// give up before their answer.
    package var waitingPushesMax = 4_096
    /// The reads that wait for a thread: some seconds of work for a slow processor.
    static let waitingReadsMax = 4_096
    /// The bytes that wait for one stream: four times a full store of the default size. Its device
    /// had better read the store again than all of them.
    package var streamBufferBytesMax = 4 << 20

    // MARK: - Accounts and stores

    /// A person's devices, with those that were replaced and never signed out.
    static let devicesPerAccountMax = 256
    /// Each app has one store, some have one for each document or team.
    package var storesPerAccountMax = 256
    /// Apps are registered by hand.
    static let appsMax = 10_000
    /// For the audit log, some 20 MB. The oldest entries of the most frequent kind are removed, so
    /// the rare ones last for years.
    package var auditEntriesMax = 100_000
    /// The time for which a sign-in code is valid, unless whoever creates it says otherwise.
    package var signInCodeSeconds: Int64 = 600
    /// A device is removed this long after its credential has expired.
    static let expiredDevicesKeptSeconds: Int64 = 30 * 86_400

    // MARK: - Deletions

    /// The minimum time for which tombstones are kept, unless there are more than
    /// ``deletionsPerStoreMax``: a long holiday. A device that was away for longer reads the whole
    /// store and loses nothing.
    static let deletionsRememberedSeconds: Int64 = 30 * 86_400
    /// Sixteen times the keys of a store by default.
    package var deletionsPerStoreMax = 16_384
    /// A device not seen for this long does not hold up compaction: nobody leaves a device in use in
    /// a drawer for a quarter of a year.
    static let deviceLiveSeconds: Int64 = 90 * 86_400
}
