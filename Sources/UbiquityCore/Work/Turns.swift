// SPDX-License-Identifier: Apache-2.0

/// Waiting elements of many names: each name has a line of its own, and the first of each line come in turns.
/// Whoever has more waiting waits longer for it, and nobody else does.
package struct Turns<Name: Hashable, Element> {
    /// None is empty.
    private var lines: [Name: [Element]] = [:]
    /// The names that have a line, the one whose turn it is first.
    private var order: [Name] = []
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { order.isEmpty }
    /// In no particular order.
    package var all: [Element] { lines.values.flatMap { $0 } }

    /// How many elements of a name wait.
    package func count(of name: Name) -> Int { lines[name]?.count ?? 0 }

    package mutating func append(_ element: Element, of name: Name) {
        if lines[name] == nil { order.append(name) }
        lines[name, default: []].append(element)
        count += 1
    }

    /// Puts an element back that was taken and is not done: before all others of its name, whose turn
    /// comes after everybody else's.
    package mutating func putBack(_ element: Element, of name: Name) {
        if lines[name] == nil { order.append(name) }
        lines[name, default: []].insert(element, at: 0)
        count += 1
    }

    /// Takes one of each name after the other, until one does not fit; it is the first next time.
    package mutating func take(while fits: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        while let name = order.first, let first = lines[name]?.first, fits(first) {
            if let (_, element) = next() { taken.append(element) }
        }
        return taken
    }

    /// Takes the one whose turn it is.
    package mutating func next() -> (name: Name, element: Element)? {
        guard let name = order.first, let element = lines[name]?.removeFirst() else { return nil }
        order.removeFirst()
        if lines[name]?.isEmpty ?? true { lines[name] = nil } else { order.append(name) }
        count -= 1
        return (name, element)
    }
}
