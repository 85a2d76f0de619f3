// SPDX-License-Identifier: Apache-2.0

/// Waiting elements, each under a name. Each name has its own line, and the lines take turns. A
/// name with more waiting elements waits longer for them, without delaying others.
struct FairQueue<Name: Hashable, Element> {
    /// No line is empty.
    private var lines: [Name: [Element]] = [:]
    /// The names that have a line, from `first` on, beginning with the one whose turn is next.
    private var order: [Name] = []
    private var first = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// All elements, in no particular order.
    var all: [Element] { lines.values.flatMap { $0 } }

    /// The number of waiting elements of a name.
    func count(of name: Name) -> Int { lines[name]?.count ?? 0 }

    mutating func append(_ element: Element, of name: Name) {
        insert(of: name) { $0.append(element) }
    }

    /// Puts back an element that was taken but is not done. It becomes the first of its name, whose
    /// turn comes after all others.
    mutating func putBack(_ element: Element, of name: Name) {
        insert(of: name) { $0.insert(element, at: 0) }
    }

    private mutating func insert(of name: Name, _ insert: (inout [Element]) -> Void) {
        func isFirst(_ line: inout [Element]) -> Bool {
            insert(&line)
            return line.count == 1
        }
        if isFirst(&lines[name, default: []]) { order.append(name) }
        count += 1
    }

    /// Takes elements in turns until one does not fit, which will be the first next time.
    /// - Parameter rounds: The most elements of one name.
    mutating func take(rounds: Int, while fits: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        for _ in 0..<rounds {
            for _ in first..<order.count {
                guard let (_, element) = next(if: fits) else { return taken }
                taken.append(element)
            }
        }
        return taken
    }

    /// Takes the element whose turn it is.
    mutating func next() -> (name: Name, element: Element)? { next { _ in true } }

    private mutating func next(if fits: (Element) -> Bool) -> (name: Name, element: Element)? {
        guard first < order.count, let line = lines.index(forKey: order[first]),
            let element = lines.values[line].first, fits(element)
        else { return nil }
        let name = order[first]
        skipName()
        if lines.values[line].count == 1 {
            lines.remove(at: line)
        } else {
            lines.values[line].removeFirst()
            order.append(name)
        }
        count -= 1
        return (name, element)
    }

    /// Moves the others only when they are the fewer, so that this takes constant time on average.
    private mutating func skipName() {
        first += 1
        guard first * 2 >= order.count else { return }
        order.removeFirst(first)
        first = 0
    }
}
