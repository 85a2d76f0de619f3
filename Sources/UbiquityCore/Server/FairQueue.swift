// SPDX-License-Identifier: Apache-2.0

/// Waiting elements, each under a name. Each name has its own line, and the lines take turns. A
/// name with more waiting elements waits longer for them, without delaying others.
package struct FairQueue<Name: Hashable, Element> {
    /// No line is empty.
    private var lines: [Name: FIFOQueue<Element>] = [:]
    /// The names that have a line, beginning with the one whose turn is next.
    private var order = FIFOQueue<Name>()
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// The number of waiting elements of a name.
    package func count(of name: Name) -> Int { lines[name]?.count ?? 0 }

    package mutating func append(_ element: Element, of name: Name) {
        insert(of: name) { $0.append(element) }
    }

    /// Puts back an element that was taken but is not done. It becomes the first of its name, whose
    /// turn comes after all others.
    package mutating func putBack(_ element: Element, of name: Name) {
        insert(of: name) { $0.putBack(element) }
    }

    private mutating func insert(of name: Name, _ insert: (inout FIFOQueue<Element>) -> Void) {
        func isFirst(_ line: inout FIFOQueue<Element>) -> Bool {
            insert(&line)
            return line.count == 1
        }
        if isFirst(&lines[name, default: FIFOQueue()]) { order.append(name) }
        count += 1
    }

    /// Takes elements in turns until one does not fit, which will be the first next time.
    /// - Parameter rounds: The most elements of one name.
    package mutating func take(rounds: Int = .max, while fits: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        var round = 0
        while round < rounds, !isEmpty {
            for _ in 0..<order.count {
                guard let (_, element) = next(if: fits) else { return taken }
                taken.append(element)
            }
            round += 1
        }
        return taken
    }

    /// Takes the element whose turn it is.
    package mutating func next() -> (name: Name, element: Element)? { next { _ in true } }

    private mutating func next(if fits: (Element) -> Bool) -> (name: Name, element: Element)? {
        guard let name = order.first, let line = lines.index(forKey: name),
            let element = lines.values[line].first, fits(element)
        else { return nil }
        _ = order.popFirst()
        if lines.values[line].count == 1 {
            lines.remove(at: line)
        } else {
            _ = lines.values[line].popFirst()
            order.append(name)
        }
        count -= 1
        return (name, element)
    }
}

/// A first-in, first-out queue.
package struct FIFOQueue<Element> {
    /// From `start` on; nothing before that.
    private var elements: [Element?] = []
    private var start = 0

    package init() {}

    package var count: Int { elements.count - start }
    package var isEmpty: Bool { count == 0 }
    package var first: Element? { isEmpty ? nil : elements[start] }

    package mutating func append(_ element: Element) { elements.append(element) }

    /// Makes the element the first again.
    package mutating func putBack(_ element: Element) {
        guard start > 0 else { return elements.insert(element, at: 0) }
        start -= 1
        elements[start] = element
    }

    /// Moves the others only when they are the fewer, so that this takes constant time on average.
    package mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[start].take()
        start += 1
        if start * 2 >= elements.count {
            elements.removeFirst(start)
            start = 0
        }
        return element
    }
}

extension FairQueue: Sendable where Name: Sendable, Element: Sendable {}
extension FIFOQueue: Sendable where Element: Sendable {}
