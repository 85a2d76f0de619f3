// SPDX-License-Identifier: Apache-2.0

import Ubiquity

/// A device that a person refers to by its ID, or by its name if only one device has it.
protocol NamedDevice {
    var id: String { get }
    var name: String { get }
}

extension ServerDevice: NamedDevice {}
extension UbiquityDelivery.Device: NamedDevice {}

extension Array where Element: NamedDevice {
    /// - Throws: `none` if there is no such device, and another ``Failure`` if there are several.
    func device(_ text: String, orThrow none: Failure) throws(Failure) -> Element {
        if let device = first(where: { $0.id == text }) { return device }
        let named = filter { $0.name == text }
        guard let device = named.first else { throw none }
        guard named.count == 1 else {
            let ids = named.map(\.id).joined(separator: ", ")
            throw Failure(
                .badInput, "several devices are called \"\(text)\"; give the ID instead: \(ids)")
        }
        return device
    }
}
