// SPDX-License-Identifier: Apache-2.0

/// Finds the number of a key by the key's hash: what a dictionary does, without its slower hash.
///
/// Numbers are only ever added. An app's calls wait for it; at most half of the places are taken,
/// so most look-ups see one place.
struct KeyIndex: Sendable {
    private struct Place: Sendable {
        var hash: UInt32 = 0
        /// -1: free.
        var number: Int32 = -1
    }

    /// A power of two of them. A number stands in the first free place from its hash on, going round.
    private var places: [Place]
    private(set) var count = 0
    /// For the hashes of the keys.
    let seed: HashSeed

    /// - Parameter capacity: How many numbers it is made for; it grows.
    init(capacity: Int = 0, seed: HashSeed = .ofProcess) {
        self.seed = seed
        var size = 8
        while size < 2 * capacity { size *= 2 }
        places = Array(repeating: Place(), count: size)
    }

    /// The number that was added with this hash and is the right one; nil: there is none.
    @inline(__always)
    func find(_ hash: UInt32, where isRight: (Int) -> Bool) -> Int? {
        let mask = places.count - 1
        var index = Int(hash) & mask
        while true {
            let place = places[index]
            if place.number < 0 { return nil }
            if place.hash == hash, isRight(Int(place.number)) { return Int(place.number) }
            index = (index + 1) & mask
        }
    }

    /// Adds a number that is not there yet.
    mutating func add(_ number: Int, _ hash: UInt32) {
        if 2 * (count + 1) > places.count { grow() }
        put(Place(hash: hash, number: Int32(number)))
        count += 1
    }

    private mutating func put(_ place: Place) {
        let mask = places.count - 1
        var index = Int(place.hash) & mask
        while places[index].number >= 0 { index = (index + 1) & mask }
        places[index] = place
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: Place(), count: 2 * old.count)
        for place in old where place.number >= 0 { put(place) }
    }
}
