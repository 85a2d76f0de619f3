// SPDX-License-Identifier: Apache-2.0

/// A fair queue: each name has a line of its own, and the lines take turns. A name with more
/// waiting elements only delays itself.
struct Turns<Name: Hashable, Element> {
    /// No line is empty.
    private var lines: [Name: [Element]] = [:]
    /// The names with a line, the next one first.
    private var order: [Name] = []
    private(set) var count = 0

    var isEmpty: Bool { order.isEmpty }
    /// In no particular order.
    var all: [Element] { lines.values.flatMap { $0 } }

    mutating func append(_ element: Element, of name: Name) {
        if lines[name] == nil { order.append(name) }
        lines[name, default: []].append(element)
        count += 1
    }

    /// Takes one element of each name in turn until one does not fit. That one is first next time.
    mutating func take(while fits: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        var next = 0
        while next < order.count {
            let name = order[next]
            guard let first = lines[name]?.first, fits(first) else { break }
            taken.append(first)
            next += 1
            lines[name]?.removeFirst()
            if lines[name]?.isEmpty ?? true { lines[name] = nil } else { order.append(name) }
        }
        order.removeFirst(next)
        count -= taken.count
        return taken
    }
}
