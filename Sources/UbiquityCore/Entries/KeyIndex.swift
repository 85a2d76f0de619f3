// SPDX-License-Identifier: Apache-2.0

/// Maps a key's hash to the key's number, like a dictionary but with a faster hash.
///
/// Numbers are only ever added. An app's calls wait for it, so at most half of the places are taken
/// and most look-ups visit one place.
struct KeyIndex: Sendable {
    private struct Place: Sendable {
        var hash: UInt32 = 0
        /// -1 if free.
        var number: Int32 = -1
    }

    /// The length is a power of two. A number stands in the first free place from its hash on,
    /// wrapping around.
    private var places: [Place]
    private(set) var count = 0
    /// The seed of the keys' hashes.
    let seed: HashSeed

    /// - Parameter capacity: The expected count. The index grows beyond it.
    init(capacity: Int = 0, seed: HashSeed = .ofProcess) {
        self.seed = seed
        var size = 8
        while size < 2 * capacity { size *= 2 }
        places = Array(repeating: Place(), count: size)
    }

    /// The number added with this hash for which `isRight` holds; nil if there is none.
    @inline(__always)
    func find(_ hash: UInt32, where isRight: (Int) -> Bool) -> Int? {
        let mask = places.count - 1
        var index = Int(truncatingIfNeeded: hash) & mask
        while true {
            let place = places[index]
            if place.number < 0 { return nil }
            if place.hash == hash, isRight(Int(place.number)) { return Int(place.number) }
            index = (index + 1) & mask
        }
    }

    /// Adds a number that is not in the index yet.
    mutating func add(_ number: Int, _ hash: UInt32) {
        if 2 * (count + 1) > places.count { grow() }
        put(Place(hash: hash, number: Int32(number)))
        count += 1
    }

    private mutating func put(_ place: Place) {
        let mask = places.count - 1
        var index = Int(truncatingIfNeeded: place.hash) & mask
        while places[index].number >= 0 { index = (index + 1) & mask }
        places[index] = place
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: Place(), count: 2 * old.count)
        for place in old where place.number >= 0 { put(place) }
    }
}
