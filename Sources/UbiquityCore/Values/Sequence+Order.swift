// SPDX-License-Identifier: Apache-2.0

extension Sequence {
    /// The same as `sorted(by:)`, by sorting numbers: each type of elements that is sorted would add
    /// to the engine in WebAssembly. Equal elements stay in their order.
    func inOrder(by isBefore: (Element, Element) -> Bool) -> [Element] {
        let elements = Array(self)
        guard elements.count > 1 else { return elements }
        return elements.indices.sorted { isBefore(elements[$0], elements[$1]) }.map { elements[$0] }
    }
}

extension Sequence where Element: Comparable {
    func inOrder() -> [Element] { inOrder { $0 < $1 } }
}
