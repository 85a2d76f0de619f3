// SPDX-License-Identifier: Apache-2.0

/// Waiting elements, each under a name. Each name has its own line, and the lines take turns. A
/// name with more waiting elements waits longer for them, without delaying others.
package struct FairQueue<Name: Hashable, Element> {
    /// No line is empty.
    private var lines: [Name: [Element]] = [:]
    /// The names that have a line, beginning with the one whose turn is next.
    private var order: [Name] = []
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { order.isEmpty }
    /// All elements, in no particular order.
    package var all: [Element] { lines.values.flatMap { $0 } }

    /// The number of waiting elements of a name.
    package func count(of name: Name) -> Int { lines[name]?.count ?? 0 }

    package mutating func append(_ element: Element, of name: Name) {
        if lines[name] == nil { order.append(name) }
        lines[name, default: []].append(element)
        count += 1
    }

    /// Puts back an element that was taken but is not done. It becomes the first of its name, whose
    /// turn comes after all others.
    package mutating func putBack(_ element: Element, of name: Name) {
        if lines[name] == nil { order.append(name) }
        lines[name, default: []].insert(element, at: 0)
        count += 1
    }

    /// Takes elements in turns until one does not fit, which will be the first next time.
    package mutating func take(while fits: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        while let name = order.first, let first = lines[name]?.first, fits(first) {
            if let (_, element) = next() { taken.append(element) }
        }
        return taken
    }

    /// Takes the element whose turn it is.
    package mutating func next() -> (name: Name, element: Element)? {
        guard let name = order.first, let element = lines[name]?.removeFirst() else { return nil }
        order.removeFirst()
        if lines[name]?.isEmpty ?? true { lines[name] = nil } else { order.append(name) }
        count -= 1
        return (name, element)
    }
}
